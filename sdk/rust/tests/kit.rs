//! Tests of the kit by its public functions.

use std::time::Duration;

use terrarium::fake::{Fake, Sent};
use terrarium::tools::{GroupAddNode, GroupSend, Wire};
use terrarium::{manifest, Alias, Code, Error, Feature, Headers, Json, Kind, Level, Manifest, Result, Turn};

const MANIFEST: Manifest = Manifest {
    description: "a \"frog\"\n\\",
    listen: &[Alias::new("in", "")],
    send: &[Alias::new("a", "x"), Alias::new("b", "").optional()],
    capabilities: &["clock"],
    config: r#"{"type": "object"}"#,
    ..manifest!()
};

#[test]
fn a_manifest_is_json() {
    const JSON: [u8; MANIFEST.size()] = MANIFEST.json();
    let text = std::str::from_utf8(&JSON).unwrap();
    let json = Json::parse(text).unwrap();
    assert_eq!(json.get("name").and_then(Json::text), Some("terrarium".into()));
    assert_eq!(json.get("description").and_then(Json::text), Some("a \"frog\"\n\\".into()));
    assert_eq!(json.get("send").unwrap().raw(), r#"[{"alias":"a","description":"x"},{"alias":"b","optional":true}]"#);
    assert_eq!(json.get("capabilities").unwrap().raw(), r#"["clock"]"#);
    assert_eq!(json.get("config").unwrap().raw(), r#"{"type": "object"}"#);
}

#[test]
fn reads_json() {
    let text = r#" {"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\ud800\n"], "b": {"c": null}, "a\"": true, "b": false} "#;
    let json = Json::parse(text).unwrap();
    let list: Vec<Json<'_>> = json.get("a").unwrap().items().collect();
    assert_eq!((list[0].whole(), list[1].whole(), list[1].number()), (Some(1), None, Some(-2500.0)));
    assert_eq!(list[2].text(), Some("xé😀\u{fffd}\n".into()));
    assert_eq!(json.get("a\"").and_then(Json::bool), Some(true));
    assert_eq!(json.get("b").and_then(Json::bool), Some(false));
    assert_eq!(json.members().count(), 4);
    assert!(json.get("c").is_none());
}

#[test]
fn refuses_what_is_not_json() {
    let deep = "[".repeat(129) + &"]".repeat(129);
    for text in
        ["", "[1,]", "{\"a\"}", "01", "1.", "\"\\x\"", "\"\\u12\"", "\"\n\"", "nul", "[] []", "\"é\\u12é4\"", &deep]
    {
        assert_eq!(Json::parse(text).unwrap_err().code(), Code::INVALID_ARGUMENT, "{}", text);
    }
    assert!(Json::parse(&deep[1..257]).is_ok());
}

#[test]
fn a_failed_turn_leaves_its_log_lines_only() {
    fn handle(turn: &mut Turn) -> Result<()> {
        turn.log(Level::Info, "begins");
        turn.state_set("k", "v")?;
        turn.output("x")?;
        turn.set_timer("t", Duration::ZERO, None, "")?;
        turn.send_all("y")?;
        Err(std::io::Error::new(std::io::ErrorKind::Other, "no luck"))?
    }
    let mut fake = Fake::new(handle);
    fake.channels = vec!["out".into()];
    let e = fake.start().unwrap_err();
    assert_eq!((e.code(), e.text()), (Code::FAILED, "no luck"));
    assert_eq!((fake.sent.len(), fake.outputs.len(), fake.state.len(), fake.timers.len()), (0, 0, 0, 0));
    assert_eq!(fake.logs, [(Level::Info, "begins".into()), (Level::Error, "no luck".into())]);
}

#[test]
fn a_map_sends_what_its_function_returns() {
    let mut fake = Fake::new(|turn| terrarium::map(turn, |text| Some(text.to_uppercase()).filter(|t| !t.is_empty())));
    fake.channels = vec!["out".into()];
    fake.message("in", "frog").unwrap();
    fake.message("in", "").unwrap();
    fake.start().unwrap();
    assert_eq!(fake.sent, [Sent::on("out", "FROG")]);
}

#[test]
fn headers_cannot_be_smuggled_in() {
    fn handle(turn: &mut Turn) -> Result<()> {
        turn.send_all_with("x", &Headers::from([("a", turn.text()?)])).map(drop)
    }
    let mut fake = Fake::new(handle);
    fake.channels = vec!["out".into()];
    fake.message("in", "1").unwrap();
    assert_eq!(fake.sent, [Sent::on("out", "x").header("a", "1")]);
    assert_eq!(fake.message("in", "1\0b\0x").unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn the_last_header_of_a_name_counts_and_reserved_ones_are_left_out() {
    fn handle(turn: &mut Turn) -> Result<()> {
        assert_eq!(turn.header("a").as_deref(), Some(&b"2"[..]));
        turn.send_all_with("x", &turn.headers())?;
        turn.send_all_with("x", &Headers::from([("Terrarium-Id", "made up")])).map(drop)
    }
    let mut fake = Fake::new(handle);
    fake.channels = vec!["out".into()];
    let headers = Headers::from([("a", "1"), ("terrarium-id", "7"), ("a", "2")]);
    assert_eq!(fake.message_with("in", "", &headers).unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn tools_get_typed_arguments() {
    fn handle(turn: &mut Turn) -> Result<()> {
        assert!(turn.has_feature(Feature::Tools));
        let wires = [Wire { channel: "pond", alias: None }, Wire { channel: "lake", alias: Some("in") }];
        turn.group_add_node(
            "frog",
            GroupAddNode { listen: &wires, config: Some("{}"), task: Some(b"go"), ..GroupAddNode::default() },
        )?;
        turn.group_send("bob", [255, 0, 1, 2], GroupSend { reply_to: Some("a#1"), ..GroupSend::default() }).map(drop)
    }
    let mut fake = Fake::new(handle);
    fake.tools = Some(Box::new(|name, args| match (name, args) {
        (
            "group_add_node",
            r#"{"species":"frog","config":{},"listen":[{"channel":"pond"},{"channel":"lake","alias":"in"}],"task":"go"}"#,
        ) => Ok("{}".into()),
        ("group_send", r#"{"creature":"bob","payload":{"base64":"/wABAg=="},"reply_to":"a#1"}"#) => Ok("{}".into()),
        _ => Err(Error::new(Code::INTERNAL, format!("{} {}", name, args))),
    }));
    fake.start().unwrap();
}

#[test]
fn limits_are_those_of_the_contract() {
    fn handle(turn: &mut Turn) -> Result<()> {
        let code = |result: Result<()>| result.unwrap_err().code();
        assert_eq!(code(turn.state_set(&"k".repeat(513), "")), Code::TOO_LARGE);
        assert_eq!(code(turn.send("out", vec![0; (1 << 20) + 1])), Code::TOO_LARGE);
        assert_eq!(code((0..2000).try_for_each(|_| turn.send("out", ""))), Code::LIMIT);
        assert_eq!(
            code((0..300).try_for_each(|n| turn.set_timer(&n.to_string(), Duration::ZERO, None, ""))),
            Code::LIMIT
        );
        assert_eq!(code(turn.reply("")), Code::DENIED);
        assert_eq!(code(turn.http("{}", "", 1)), Code::UNSUPPORTED);
        Ok(())
    }
    let mut fake = Fake::new(handle);
    fake.channels = vec!["out".into()];
    fake.start().unwrap();
    assert_eq!((fake.sent.len(), fake.timers.len()), (1024, 256));
}

#[test]
fn timers_fire_in_their_order() {
    fn handle(turn: &mut Turn) -> Result<()> {
        let ms = Duration::from_millis;
        match turn.kind() {
            Kind::Start => {
                turn.set_timer("b", ms(5), Some(ms(10)), "")?;
                turn.set_timer("a", ms(7), None, "")
            }
            _ => turn.output(format!("{}{}", turn.timer_name(), turn.now().as_millis())),
        }
    }
    let mut fake = Fake::new(handle);
    fake.start().unwrap();
    fake.advance(Duration::from_millis(20)).unwrap();
    assert_eq!(fake.outputs, ["b5", "a7", "b15"]);
}

#[test]
fn a_number_in_the_state_is_decimal() {
    let mut fake = Fake::new(|turn| turn.state_whole("n").map(drop));
    fake.start().unwrap();
    fake.state.insert("n".into(), "+1".into());
    assert_eq!(fake.start().unwrap_err().to_string(), "state n: it is not a whole number");
}

/// The limits count what the host counts.
#[test]
fn limits_of_a_turn() {
    fn handle(turn: &mut Turn) -> Result<()> {
        turn.output("one ")?;
        turn.output("output")?;
        for n in 0..4096 {
            turn.state_set(&format!("k{}", n), "")?;
        }
        turn.state_set("k0", "again")?;
        assert!(!turn.state_delete("none")?);
        assert_eq!(turn.state_set("k4096", "").unwrap_err().code(), Code::LIMIT);
        assert_eq!(turn.state_get(&"k".repeat(513))?, None);
        for _ in 0..1024 {
            turn.request("self", "", Duration::from_secs(1), i64::MIN)?;
        }
        assert_eq!(turn.send_to("self", "").unwrap_err().code(), Code::LIMIT);
        Ok(())
    }
    let mut fake = Fake::new(handle);
    fake.message("in", "").unwrap();
    assert_eq!(fake.outputs, ["one output"]);
    assert_eq!(fake.state["k0"], "again");
    assert_eq!(fake.requests.len(), 1024);
}

/// A long text of an error is cut at the end of a character.
#[test]
fn a_long_log_line_is_cut() {
    let mut fake = Fake::new(|turn| {
        turn.log(Level::Info, "12345");
        Err("\u{e4}".repeat(40_000))?
    });
    fake.start().unwrap_err();
    assert_eq!(fake.logs[1].1, "\u{e4}".repeat(32_764) + "\u{2026}");
    fake.logs.clear();
    let mut full = Fake::new(|turn| {
        turn.log(Level::Info, "x".repeat(65_536));
        turn.log(Level::Info, "more");
        Ok(())
    });
    full.start().unwrap();
    assert_eq!(full.logs.len(), 1);
}
