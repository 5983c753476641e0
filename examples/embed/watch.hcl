channel "lines" { description = "what the sensors say" }
channel "alarms" { description = "readings that need attention" }

creature "guard" {
  module = "builtin:gate"
  listen = [channel.lines]
  send   = [channel.alarms]
  config = { match = "too (hot|cold|dry|wet)" }
}
