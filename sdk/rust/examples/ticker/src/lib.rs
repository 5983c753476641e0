//! Sets timers.

use std::time::Duration;

use terrarium::{manifest, Kind, Level, Manifest, Result, Turn};

terrarium::creature!(
    handle,
    init = |turn| Config::read(turn).map(drop),
    manifest = Manifest {
        config: r#"{
            "type": "object",
            "properties": {
                "every_ms": {"type": "integer", "minimum": 1, "maximum": 86400000},
                "limit": {"type": "integer", "minimum": 0, "maximum": 1000000}
            },
            "additionalProperties": false
        }"#,
        ..manifest!()
    },
);

const DAY_MS: u32 = 86_400_000;

struct Config {
    every: Duration,
    limit: i64,
}

impl Config {
    fn read(turn: &Turn) -> Result<Config> {
        turn.config_knows(&["every_ms", "limit"])?;
        let every_ms = turn.config_whole_or("every_ms", 1..=DAY_MS.into(), 1000)?;
        Ok(Config {
            every: Duration::from_millis(every_ms as u64),
            limit: turn.config_whole_or("limit", 0..=1_000_000, 0)?,
        })
    }
}

fn handle(turn: &mut Turn) -> Result<()> {
    match turn.kind() {
        Kind::Start => {
            let every = Config::read(turn)?.every;
            turn.set_timer("tick", every, Some(every), "tick")
        }
        Kind::Timer => match &*turn.timer_name() {
            "tick" => tick(turn),
            name => {
                let payload = turn.payload();
                turn.send_all([name.as_bytes(), b": ", &payload].concat()).map(drop)
            }
        },
        Kind::Message => command(turn),
        _ => Ok(()),
    }
}

fn tick(turn: &mut Turn) -> Result<()> {
    let n = turn.state_whole("ticks")? + 1;
    turn.state_set_whole("ticks", n)?;
    turn.send_all(format!("tick {n} at {}", turn.now().as_millis() as u64))?;
    let limit = Config::read(turn)?.limit;
    if limit > 0 && n >= limit {
        turn.cancel_timer("tick")?;
        turn.log(Level::Info, format!("done after {n} ticks"));
    }
    Ok(())
}

fn command(turn: &mut Turn) -> Result<()> {
    let text = turn.text()?;
    if text == "stop" {
        let was_set = turn.cancel_timer("tick")?;
        turn.log(Level::Info, if was_set { "stopped" } else { "was not running" });
        return Ok(());
    }
    match once(&text) {
        Some((delay, name, payload)) => turn.set_timer(name, delay, None, payload),
        None => Err(format!("unknown command: {text}"))?,
    }
}

/// Reads `in MS NAME TEXT`.
fn once(text: &str) -> Option<(Duration, &str, &str)> {
    let (ms, rest) = text.strip_prefix("in ")?.split_once(' ')?;
    let (name, payload) = rest.split_once(' ')?;
    let delay: u32 = ms.parse().ok().filter(|n| *n <= DAY_MS && !ms.starts_with('+'))?;
    Some((Duration::from_millis(delay.into()), name, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::{Fake, Sent};
    use terrarium::Code;

    const SECOND: Duration = Duration::from_secs(1);

    fn ticker(config: &str) -> Fake {
        let mut fake = Fake::new(handle);
        fake.config = config.into();
        fake.channels = vec!["out".into()];
        fake.time = SECOND * 100;
        fake.start().unwrap();
        fake
    }

    #[test]
    fn ticks_until_its_limit() {
        let mut fake = ticker(r#"{"limit": 2}"#);
        fake.advance(SECOND * 5).unwrap();
        assert_eq!(fake.sent, [Sent::on("out", "tick 1 at 101000"), Sent::on("out", "tick 2 at 102000")]);
        assert_eq!(fake.logs, [(Level::Info, "done after 2 ticks".into())]);
        assert!(fake.timers.is_empty());
    }

    #[test]
    fn fires_once() {
        let mut fake = ticker(r#"{"every_ms": 60000}"#);
        fake.message("in", "in 1500 egg is it done?").unwrap();
        fake.advance(SECOND).unwrap();
        assert_eq!(fake.sent, []);
        fake.advance(SECOND * 10).unwrap();
        assert_eq!(fake.sent, [Sent::on("out", "egg: is it done?")]);
    }

    #[test]
    fn stops() {
        let mut fake = ticker("{}");
        fake.message("in", "stop").unwrap();
        fake.message("in", "stop").unwrap();
        assert_eq!(fake.logs, [(Level::Info, "stopped".into()), (Level::Info, "was not running".into())]);
    }

    #[test]
    fn refuses_other_commands() {
        for text in ["", "in", "in 1", "in 1 egg", "in x egg y", "in +1 egg y", "in 86400001 egg y", "inside"] {
            let e = ticker("{}").message("in", text).unwrap_err();
            assert_eq!((e.code(), e.to_string()), (Code::FAILED, format!("unknown command: {text}")));
        }
    }
}
