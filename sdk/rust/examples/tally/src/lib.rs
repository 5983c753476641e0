//! Counts words. It shows state and configuration.

use terrarium::{manifest, Alias, Headers, Kind, Manifest, Result, Turn};

terrarium::creature!(
    handle,
    init = |turn| Config::read(turn).map(drop),
    manifest = Manifest {
        send: &[Alias::new("counts", "the counts as they change")],
        config: r#"{
            "type": "object",
            "properties": {
                "step": {"type": "integer", "minimum": 1, "maximum": 1000000},
                "prefix": {"type": "string"}
            },
            "additionalProperties": false
        }"#,
        ..manifest!()
    },
);

struct Config {
    step: i64,
    prefix: String,
}

impl Config {
    fn read(turn: &Turn) -> Result<Config> {
        turn.config_knows(&["step", "prefix"])?;
        Ok(Config { step: turn.config_whole_or("step", 1..=1_000_000, 1)?, prefix: turn.config_text_or("prefix", "")? })
    }
}

fn handle(turn: &mut Turn) -> Result<()> {
    if turn.kind() != Kind::Message {
        return Ok(());
    }
    let text = turn.text()?;
    match text.strip_prefix('-') {
        _ if text == "?" => list(turn),
        Some(key) => remove(turn, key),
        None => count(turn, &text),
    }
}

fn list(turn: &mut Turn) -> Result<()> {
    let mut lines = String::new();
    for key in turn.state_list("n/")? {
        lines += &format!("{}={}\n", &key[2..], turn.state_whole(&key)?);
    }
    if lines.is_empty() {
        lines += "empty\n";
    }
    turn.output(lines)
}

fn remove(turn: &mut Turn, key: &str) -> Result<()> {
    let found = turn.state_delete(&format!("n/{key}"))?;
    turn.send("counts", format!("{key} {}", if found { "removed" } else { "unknown" }))
}

fn count(turn: &mut Turn, key: &str) -> Result<()> {
    let Config { step, prefix } = Config::read(turn)?;
    let state = format!("n/{key}");
    let count = turn.state_whole(&state)? + step;
    turn.state_set_whole(&state, count)?;
    turn.send_with("counts", format!("{prefix}{key}={count}"), &Headers::from([("count", count.to_string())]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::{Fake, Sent};

    fn tally(config: &str) -> Fake {
        let mut fake = Fake::with_init(handle, |turn| Config::read(turn).map(drop));
        fake.config = config.into();
        fake.channels = vec!["counts".into()];
        fake
    }

    #[test]
    fn counts_in_steps() {
        let mut fake = tally(r#"{"step": 3, "prefix": "> "}"#);
        fake.init().unwrap();
        fake.message("in", "frog").unwrap();
        fake.message("in", "frog").unwrap();
        let expected =
            [Sent::on("counts", "> frog=3").header("count", "3"), Sent::on("counts", "> frog=6").header("count", "6")];
        assert_eq!(fake.sent, expected);
        assert_eq!(fake.state["n/frog"], "6");
    }

    #[test]
    fn lists_and_removes() {
        let mut fake = tally("{}");
        for text in ["?", "newt", "frog", "?", "-frog", "-frog", "?"] {
            fake.message("in", text).unwrap();
        }
        assert_eq!(fake.outputs, ["empty\n", "frog=1\nnewt=1\n", "newt=1\n"]);
        assert_eq!(fake.sent[2..], [Sent::on("counts", "frog removed"), Sent::on("counts", "frog unknown")]);
    }

    #[test]
    fn checks_its_configuration() {
        let problem = |config| tally(config).init().unwrap_err().to_string();
        assert_eq!(problem(r#"{"step": 0}"#), "config step: it must be a whole number from 1 to 1000000");
        assert_eq!(problem(r#"{"prefix": 1}"#), "config prefix: it must be a text");
        assert_eq!(problem(r#"{"stop": 1}"#), "config stop: the creature has no such attribute; it has step, prefix");
    }

    #[test]
    fn wants_text() {
        assert_eq!(tally("{}").message("in", b"\xff").unwrap_err().to_string(), "the payload is not UTF-8");
    }
}
