use super::Fake;
use crate::raw::{Code, Host, Kind, ALL_CHANNELS};
use crate::{Error, Result, Turn};

/// Makes the calls in the payload, and compares the answers that are beside them.
fn check(turn: &mut Turn) -> Result<()> {
    let lines = String::from_utf8_lossy(&turn.payload()).into_owned();
    for line in lines.lines() {
        let call = &line[..line.find("= ").expect("an answer") + 2];
        let words: Vec<&str> = call.split(' ').collect();
        let numbers: Vec<i64> = words[3..7].iter().map(|n| n.parse().expect("a number")).collect();
        let payload = vec![0; numbers[0] as usize];
        let (mut made, mut status) = (0, 0);
        while made < numbers[3] {
            let (name, text) = (decoded(words[1], made), decoded(words[2], made));
            status = probe(&mut *turn.host(), words[0], &name, &text, &payload, (numbers[1], numbers[2]));
            if status < 0 {
                break;
            }
            made += 1;
        }
        assert_eq!(format!("{}{} {}", call, made, status), line);
    }
    Ok(())
}

fn decoded(word: &str, made: i64) -> Vec<u8> {
    if word == "-" {
        return Vec::new();
    }
    if let Some((letter, times)) = word.split_once('^') {
        return letter.repeat(times.parse().expect("a number")).into_bytes();
    }
    let word = word.replace('#', &made.to_string());
    let mut parts = word.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("a byte"));
        bytes.extend(part[2..].as_bytes());
    }
    bytes
}

fn probe(host: &mut Fake, op: &str, name: &[u8], text: &[u8], payload: &[u8], (a, b): (i64, i64)) -> i32 {
    match op {
        "config" => host.config(name, &mut []),
        "send" => match host.channel(name) {
            channel if channel < 0 => channel,
            channel => host.send(channel, payload, text),
        },
        "send_all" => host.send(ALL_CHANNELS, payload, text),
        "send_to" => host.send_to(name, payload),
        "request" => Host::request(host, name, payload, a, b),
        "reply" => host.reply(payload),
        "output" => host.output(payload),
        "state_get" => host.state_get(name, &mut []),
        "state_set" => host.state_set(name, payload),
        "state_delete" => host.state_delete(name),
        "state_list" => host.state_list(name, &mut []),
        "timer_set" => host.timer_set(name, a, b, payload),
        "timer_cancel" => host.timer_cancel(name),
        "log" => host.log(a as i32, payload),
        "tool" => host.tool(name, text).min(0),
        _ => panic!("{} is not a call", op),
    }
}

/// The file has the answers of the host, and describes its lines.
#[test]
fn answers_as_the_host() {
    let reference = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../reference"));
    if !reference.exists() {
        return; // the packaged crate, without the other kits
    }
    let text = std::fs::read_to_string(reference.join("probes.txt")).expect("the answers of the host");
    for group in text.trim_end().split("\n\n").skip(1) {
        let (title, lines) = group.split_once('\n').expect("a title");
        let mut fake = Fake::new(check);
        fake.config = r#"{"text":"a","list":[1,"b"],"null":null}"#.into();
        fake.channels = vec!["out".into(), "common".into()];
        fake.creatures = vec!["frog".into()];
        if title == "turn tools" {
            fake.tools = Some(Box::new(|name, _| match name {
                "group_status" => Ok("{}".into()),
                _ => Err(Error::new(Code::NOT_FOUND, "there is no such tool".to_string())),
            }));
        }
        let kind = if title.starts_with("request ") { Kind::Request } else { Kind::Message };
        fake.deliver(kind, &[(crate::raw::Source::Payload, lines.as_bytes())]).expect(title);
    }
}
