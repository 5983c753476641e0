//! Numbers the messages that it passes on.

use terrarium::{Kind, Result, Turn};

terrarium::creature!(handle);

fn handle(turn: &mut Turn) -> Result<()> {
    if turn.kind() != Kind::Message {
        return Ok(());
    }
    // FAULT
    let text = turn.text()?;
    let n = turn.state_whole("n")? + 1;
    turn.state_set_whole("n", n)?;
    turn.send("out", format!("VERSION {text} {n}"))
}
