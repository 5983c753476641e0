//! Repeats messages in capital letters.

use terrarium::{manifest, Kind, Result, Turn};

terrarium::creature!(handle, manifest = manifest!());

fn handle(turn: &mut Turn) -> Result<()> {
    if turn.kind() == Kind::Message {
        let mut payload = turn.payload();
        payload.make_ascii_uppercase();
        turn.send_all(payload)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::{Fake, Sent};

    #[test]
    fn repeats_in_capital_letters() {
        let mut fake = Fake::new(handle);
        fake.channels = vec!["a".into(), "b".into()];
        fake.message("in", b"frog \xff 1").unwrap();
        assert_eq!(fake.sent, [Sent::on("a", b"FROG \xff 1"), Sent::on("b", b"FROG \xff 1")]);
    }

    #[test]
    fn ignores_other_kinds() {
        let mut fake = Fake::new(handle);
        fake.channels = vec!["a".into()];
        fake.start().unwrap();
        assert_eq!(fake.sent, []);
    }
}
