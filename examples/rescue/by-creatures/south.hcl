# The station in the south, as it always was, but that others may ask it for help.
terrarium { name = "south" }

session { merge = "allow" }

channel "calls" { description = "PLACE and what happened" }
channel "flights" {}

creature "desk" {
  module = "builtin:relay"
  listen = [channel.calls]
  send   = [channel.flights]
}

creature "helicopter" {
  module = "builtin:tally"
  listen = [channel.flights]
  config = { key = "field:1" }
}
