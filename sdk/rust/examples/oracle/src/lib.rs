//! Asks and answers.

use std::time::Duration;

use terrarium::{manifest, Alias, Code, Error, Kind, Manifest, Result, Turn};

terrarium::creature!(
    handle,
    init = |turn| turn.config_knows(&[]),
    manifest = Manifest { send: &[Alias::new("answers", "the results of its requests").optional()], ..manifest!() },
);

fn handle(turn: &mut Turn) -> Result<()> {
    match turn.kind() {
        Kind::Message => message(turn),
        Kind::Request => request(turn),
        Kind::Result => {
            let start = format!("#{} {}: ", turn.tag(), turn.result_code());
            turn.send("answers", [start.as_bytes(), &turn.payload()].concat())
        }
        _ => Ok(()),
    }
}

fn message(turn: &mut Turn) -> Result<()> {
    let text = turn.text()?;
    let mut words = text.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some("ask"), Some(name), Some(text)) => {
            let tag = turn.state_whole("asked")? + 1;
            turn.state_set_whole("asked", tag)?;
            turn.request(name, text, Duration::from_secs(1), tag)
        }
        (Some("tell"), Some(name), Some(text)) => turn.send_to(name, text),
        (Some("draw"), None, None) => {
            let mut drawn = [[0; 16]; 2];
            drawn.iter_mut().for_each(|bytes| turn.random(bytes));
            turn.output(if drawn[0] == drawn[1] { "same" } else { "different" })
        }
        _ => {
            let channel = if turn.direct() { "direct".into() } else { turn.channel() };
            let sender = turn.sender().unwrap_or_else(|| "outside".into());
            turn.output(format!("{channel} from {sender}: {text}"))
        }
    }
}

fn request(turn: &mut Turn) -> Result<()> {
    let text = turn.text()?;
    match &*text {
        "silence" => Ok(()),
        "refuse" => Err(Error::new(Code::DENIED, "I refuse")),
        "twice" => {
            turn.reply("once")?;
            turn.reply("again")
        }
        _ => turn.reply(format!("you asked: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::{Fake, Sent};

    fn oracle() -> Fake {
        let mut fake = Fake::with_init(handle, |turn| turn.config_knows(&[]));
        fake.channels = vec!["answers".into()];
        fake
    }

    #[test]
    fn asks_and_sends_the_answers() {
        let mut fake = oracle();
        fake.message("in", "ask bob what is it?").unwrap();
        fake.message("in", "ask eve and you?").unwrap();
        assert_eq!((&*fake.requests[0].to, fake.requests[1].tag), ("bob", 2));
        assert_eq!(fake.requests[0].payload, "what is it?");
        fake.answer(1, "a frog").unwrap();
        fake.fail(2, Code::DEADLINE, "too late").unwrap();
        assert_eq!(fake.sent, [Sent::on("answers", "#1 ok: a frog"), Sent::on("answers", "#2 deadline: too late")]);
        assert_eq!(fake.answer(1, "again").unwrap_err().code(), Code::NOT_FOUND);
    }

    #[test]
    fn answers() {
        let mut fake = oracle();
        assert_eq!(fake.request("why?").unwrap().unwrap(), "you asked: why?");
        assert_eq!(fake.request("silence").unwrap(), None);
        assert_eq!(fake.request("refuse").unwrap_err().to_string(), "I refuse");
        assert_eq!(fake.request("twice").unwrap_err().code(), Code::ALREADY_EXISTS);
    }

    #[test]
    fn tells_and_draws() {
        let mut fake = oracle();
        fake.message("in", "tell bob good day").unwrap();
        fake.message("in", "draw").unwrap();
        fake.message("in", "hello").unwrap();
        assert_eq!(fake.sent, [Sent::to("bob", "good day")]);
        assert_eq!(fake.outputs, ["different", "in from outside: hello"]);
    }

    #[test]
    fn has_no_configuration() {
        let mut fake = oracle();
        fake.config = r#"{"a": 1}"#.into();
        assert_eq!(fake.init().unwrap_err().to_string(), "config a: the creature has no such attribute; it has none");
    }
}
