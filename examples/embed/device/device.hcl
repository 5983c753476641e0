channel "lines" { description = "what the device measures" }
channel "numbered" { description = "the same lines with their numbers" }

creature "numbers" {
  module = "numbers.wasm"
  listen = [channel.lines]
  send   = [channel.numbered]
}
