channel "in" {}
channel "out" {}

creature "NAME" {
  module = "NAME.wasm"
  listen = [channel.in]
  send   = [channel.out]
}

test "capital letters" {
  send {
    channel = channel.in
    lines   = ["frog", "newt 7"]
  }
  assert {
    condition     = result.channel.out[*].payload == ["FROG", "NEWT 7"]
    error_message = "It said ${jsonencode(result.channel.out[*].payload)}."
  }
  assert { condition = length(result.dead_letters) == 0 }
}
