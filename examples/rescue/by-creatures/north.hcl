# The station in the north. Its alarm picks out the calls that it cannot answer alone,
# and its envoy connects it to a helper.
terrarium { name = "north" }

session { merge = "allow" }

channel "calls"   { description = "PLACE and what happened" }
channel "contact" { description = "the id of a creature in another graph that can help" }
channel "alarms"  {}
channel "clear"   {}
channel "help"    { description = "what the helper hears" }

creature "scouts" {
  module = "builtin:tally"
  listen = [channel.calls]
  config = { key = "field:1" }
}

creature "alarm" {
  module = "builtin:gate"
  listen = [channel.calls]
  send   = [channel.alarms]
  config = { match = "avalanche" }
}

creature "calm" {
  module = "builtin:gate"
  listen = [channel.calls]
  send   = [channel.clear]
  config = { match = "all well" }
}

creature "envoy" {
  module     = "builtin:envoy"
  privileged = true
  listen     = { contact = channel.contact, call = channel.alarms, release = channel.clear }
  send       = [channel.help]
}
