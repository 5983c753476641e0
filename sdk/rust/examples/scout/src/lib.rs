//! Looks around and edits its graph.

use terrarium::tools::{GroupAddNode, GroupChannel, GroupChannelAction, GroupChannelDirection, GroupSend, GroupStatus};
use terrarium::tools::{GroupWire, GroupWireAction, SendChannel};
use terrarium::{manifest, Feature, Json, Kind, Result, Turn};

terrarium::creature!(handle, graph_changed, manifest = manifest!());

fn handle(turn: &mut Turn) -> Result<()> {
    match turn.kind() {
        Kind::Start => turn.output(format!("{} starts at revision {}", turn.self_name(), turn.awareness_revision())),
        Kind::GraphChanged => look_around(turn),
        Kind::Message => command(turn),
        _ => Ok(()),
    }
}

fn look_around(turn: &mut Turn) -> Result<()> {
    let document = turn.awareness();
    let channels = Json::parse(&document)?.get("channels").and_then(|channels| channels.get("items"));
    let listens = channels.into_iter().flat_map(Json::items).filter_map(|channel| channel.get("listen")?.text());
    let aliases = listens.collect::<Vec<_>>().join(", ");
    let aliases = if aliases.is_empty() { "nothing" } else { &aliases };
    turn.output(format!("revision {}: listens on {aliases}", turn.awareness_revision()))
}

fn command(turn: &mut Turn) -> Result<()> {
    let text = turn.text()?;
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    if words == ["title"] {
        let document = turn.awareness_markdown();
        return turn.output(document.lines().next().unwrap_or(""));
    }
    if !turn.has_feature(Feature::Tools) {
        return turn.output("no tools");
    }
    // The tool, its result, and what to output if it succeeds.
    let (tool, result, done) = match *words {
        ["members"] => ("group_status", members(turn), None),
        ["make", name] => {
            let options = GroupChannel { name: Some(name), ..GroupChannel::default() };
            ("group_channel", turn.group_channel(GroupChannelAction::Create, options), Some(format!("made {name}")))
        }
        ["wire", name, alias] => ("group_channel", wire(turn, name, alias), Some(format!("wired {name}"))),
        ["say", alias, text] => {
            let options = SendChannel { headers: Some(r#"{"tone":"loud"}"#), ..SendChannel::default() };
            ("send_channel", turn.send_channel(alias, text, options), None)
        }
        ["tell", name, text] => ("group_send", turn.group_send(name, text, GroupSend::default()), None),
        ["spawn", species, name] => ("group_add_node", spawn(turn, species, name), None),
        ["stop", name] => ("group_stop_node", turn.group_stop_node(name), Some(text.clone())),
        ["resume", name] => ("group_start_node", turn.group_start_node(name), Some(text.clone())),
        ["remove", name] => ("group_remove_node", turn.group_remove_node(name), Some(text.clone())),
        ["route", name] => ("group_wire", route(turn, name), Some(format!("routed to {name}"))),
        _ => Err(format!("unknown command: {text}"))?,
    };
    match (result, done) {
        (Err(e), _) => turn.output(format!("{tool}: {}", e.code())),
        (Ok(_), Some(done)) => turn.output(done),
        (Ok(_), None) => Ok(()),
    }
}

fn members(turn: &mut Turn) -> Result<String> {
    let status = turn.group_status(GroupStatus::default())?;
    let creatures = Json::parse(&status)?.get("creatures");
    let names = creatures.into_iter().flat_map(Json::items).filter_map(|creature| creature.get("name")?.text());
    let names = names.collect::<Vec<_>>().join(", ");
    turn.output(format!("members: {names}"))?;
    Ok(status)
}

fn wire(turn: &mut Turn, channel: &str, alias: &str) -> Result<String> {
    let own = turn.self_name();
    let options = GroupChannel {
        channel: Some(channel),
        creature: Some(&own),
        direction: Some(GroupChannelDirection::Listen),
        alias: Some(alias),
        ..GroupChannel::default()
    };
    turn.group_channel(GroupChannelAction::Wire, options)
}

fn spawn(turn: &mut Turn, species: &str, name: &str) -> Result<String> {
    let spawned = turn.group_add_node(species, GroupAddNode { name: Some(name), ..GroupAddNode::default() })?;
    let name = Json::parse(&spawned)?.get("name").and_then(Json::text).unwrap_or_default();
    turn.output(format!("spawned {name}"))?;
    Ok(spawned)
}

fn route(turn: &mut Turn, name: &str) -> Result<String> {
    let own = turn.self_name();
    let options = GroupWire { from: Some(&own), to: Some(name), with_content: Some(true), ..GroupWire::default() };
    turn.group_wire(GroupWireAction::Add, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrarium::fake::Fake;
    use terrarium::{Code, Error};

    fn scout(tools: impl FnMut(&str, &str) -> Result<String> + 'static) -> Fake {
        let mut fake = Fake::new(handle);
        fake.name = "scout".into();
        fake.tools = Some(Box::new(tools));
        fake
    }

    #[test]
    fn calls_tools() {
        let mut fake = scout(|tool, args| {
            Ok(match (tool, args) {
                ("group_status", "{}") => r#"{"creatures": [{"name": "scout"}, {"name": "bob"}]}"#,
                ("group_channel", r#"{"action":"create","name":"pond"}"#) => "{}",
                (
                    "group_channel",
                    r#"{"action":"wire","channel":"pond","creature":"scout","direction":"listen","alias":"in"}"#,
                ) => "{}",
                ("send_channel", r#"{"channel":"out","payload":"hi all","headers":{"tone":"loud"}}"#) => "{}",
                ("group_add_node", r#"{"species":"frog","name":"fred"}"#) => r#"{"creature": "c1", "name": "fred-2"}"#,
                ("group_stop_node", r#"{"creature":"fred"}"#) => "{}",
                ("group_wire", r#"{"action":"add","from":"scout","to":"fred","with_content":true}"#) => "{}",
                _ => return Err(Error::new(Code::NOT_FOUND, format!("unexpected: {tool} {args}"))),
            }
            .into())
        });
        for text in
            ["members", "make pond", "wire pond in", "say out hi all", "spawn frog fred", "stop fred", "route fred"]
        {
            fake.message("in", text).unwrap();
        }
        let expected =
            ["members: scout, bob", "made pond", "wired pond", "spawned fred-2", "stop fred", "routed to fred"];
        assert_eq!(fake.outputs, expected);
    }

    #[test]
    fn goes_on_when_a_tool_fails() {
        let mut fake = scout(|_, _| Err(Error::new(Code::ALREADY_EXISTS, "it exists")));
        fake.message("in", "make pond").unwrap();
        assert_eq!(fake.message("in", "dance").unwrap_err().to_string(), "unknown command: dance");
        fake.tools = None;
        fake.message("in", "make pond").unwrap();
        assert_eq!(fake.outputs, ["group_channel: already_exists", "no tools"]);
    }

    #[test]
    fn looks_around() {
        let mut fake = scout(|_, _| Ok("{}".into()));
        fake.awareness_markdown = "# `scout`\n\n- revision: 7\n".into();
        fake.set_awareness(
            r#"{"revision": 7, "channels": {"items": [{"listen": "a"}, {"send": "x"}, {"listen": "b"}]}}"#,
        )
        .unwrap();
        fake.start().unwrap();
        fake.graph_changed().unwrap();
        fake.set_awareness("{}").unwrap();
        fake.graph_changed().unwrap();
        fake.message("in", "title").unwrap();
        let expected = [
            "scout starts at revision 7",
            "revision 7: listens on a, b",
            "revision 8: listens on nothing",
            "# `scout`",
        ];
        assert_eq!(fake.outputs, expected);
    }
}
