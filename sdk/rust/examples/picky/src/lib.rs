//! Fails in every way that a creature can fail.

use terrarium::{manifest, Code, Error, Kind, Level, Manifest, Result, Turn};

terrarium::creature!(
    handle,
    init = |turn| Config::read(turn).map(drop),
    manifest = Manifest {
        config: r#"{
            "type": "object",
            "properties": {
                "want": {"type": "string"},
                "most": {"type": "integer", "minimum": 1, "maximum": 1000},
                "strict": {"type": "boolean"}
            },
            "required": ["want"],
            "additionalProperties": false
        }"#,
        ..manifest!()
    },
);

struct Config {
    want: String,
    most: usize,
    strict: bool,
}

impl Config {
    fn read(turn: &Turn) -> Result<Config> {
        turn.config_knows(&["want", "most", "strict"])?;
        Ok(Config {
            want: turn.config_text("want")?,
            most: turn.config_whole_or("most", 1..=1000, 10)? as usize,
            strict: turn.config_bool_or("strict", false)?,
        })
    }
}

fn handle(turn: &mut Turn) -> Result<()> {
    if turn.kind() != Kind::Message {
        return Ok(());
    }
    let config = Config::read(turn)?;
    match turn.header("want") {
        None => return Err(Error::new(Code::INVALID_ARGUMENT, "the header want is missing")),
        Some(value) if value == config.want.as_bytes() => {}
        Some(value) => {
            let value = String::from_utf8_lossy(&value);
            return Err(Error::new(Code::INVALID_ARGUMENT, format!("the header want is {value}, not {}", config.want)));
        }
    }
    let text = turn.text()?;
    match &*text {
        "echo" => {
            let mut headers = turn.headers();
            headers.push("seen", "yes");
            turn.send_all_with("echo", &headers).map(drop)
        }
        "big" => set_big(turn),
        "caught" => match set_big(turn) {
            Ok(()) => Ok(()),
            Err(e) => turn.output(format!("caught {}", e.code())),
        },
        "alias" => turn.send("nowhere", "x"),
        "key" => turn.state_set("", "x"),
        "missing" => match turn.state_get("missing")? {
            Some(_) => Ok(()),
            None => turn.output("no state"),
        },
        "fail" => Err("it went wrong")?,
        "denied" => Err(Error::new(Code::DENIED, "not today")),
        "panic" => panic!("out of cheese"),
        "loop" => loop {
            drop(text.to_ascii_uppercase());
        },
        "fuel" => turn.output(if turn.fuel_left().is_some() { "counted" } else { "not counted" }),
        "log" => {
            turn.log(Level::Debug, "a debug line");
            turn.log(Level::Info, "an info line");
            turn.log(Level::Warn, "a warn line");
            turn.log(Level::Error, "an error line");
            Ok(())
        }
        _ if text.len() > config.most => {
            let (size, most) = (text.len(), config.most);
            Err(Error::new(Code::TOO_LARGE, format!("the payload has {size} bytes, and at most {most} are allowed")))
        }
        _ => {
            turn.output(&text)?;
            if config.strict {
                turn.log(Level::Info, "strict");
            }
            Ok(())
        }
    }
}

fn set_big(turn: &mut Turn) -> Result<()> {
    turn.state_set("big", vec![b'x'; 1_048_577])
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::{Fake, Sent};
    use terrarium::Headers;

    fn picky(config: &str) -> Fake {
        let mut fake = Fake::with_init(handle, |turn| Config::read(turn).map(drop));
        fake.config = config.into();
        fake.channels = vec!["out".into()];
        fake
    }

    fn message(text: &str) -> (Fake, Result<()>) {
        let mut fake = picky(r#"{"want": "tea", "strict": true}"#);
        let result = fake.message_with("in", text, &Headers::from([("want", "tea"), ("more", "1")]));
        (fake, result)
    }

    #[test]
    fn fails_in_every_way() {
        for (text, code, expected) in [
            (
                "big",
                Code::TOO_LARGE,
                "state_set: the value has 1048577 bytes; the limit state_value is 1048576 (too_large)",
            ),
            ("alias", Code::NOT_CONNECTED, "send: the creature has no send alias \"nowhere\" (not_connected)"),
            ("key", Code::INVALID_ARGUMENT, "state_set: a key is UTF-8 without NUL and not empty (invalid_argument)"),
            ("fail", Code::FAILED, "it went wrong"),
            ("denied", Code::DENIED, "not today"),
            ("panic", Code::TRAPPED, "out of cheese"),
            ("twelve bytes", Code::TOO_LARGE, "the payload has 12 bytes, and at most 10 are allowed"),
        ] {
            let (fake, result) = message(text);
            let e = result.unwrap_err();
            assert_eq!((e.code(), &*e.to_string()), (code, expected));
            assert_eq!(fake.logs, [(Level::Error, expected.into())]);
        }
    }

    #[test]
    fn succeeds() {
        assert_eq!(message("caught").0.outputs, ["caught too_large"]);
        assert_eq!(message("missing").0.outputs, ["no state"]);
        assert_eq!(message("fuel").0.outputs, ["not counted"]);
        assert_eq!(message("tea").0.logs, [(Level::Info, "strict".into())]);
        let echo = Sent::on("out", "echo").header("want", "tea").header("more", "1").header("seen", "yes");
        assert_eq!(message("echo").0.sent, [echo]);
    }

    #[test]
    fn wants_its_header() {
        let mut fake = picky(r#"{"want": "tea"}"#);
        assert_eq!(fake.message("in", "echo").unwrap_err().to_string(), "the header want is missing");
        let e = fake.message_with("in", "echo", &Headers::from([("want", "milk")])).unwrap_err();
        assert_eq!(e.to_string(), "the header want is milk, not tea");
    }

    #[test]
    fn checks_its_configuration() {
        let problem = |config| picky(config).init().unwrap_err().to_string();
        assert_eq!(problem("{}"), "config want: it is required");
        assert_eq!(problem(r#"{"want": "a", "strict": 1}"#), "config strict: it must be true or false");
    }
}
