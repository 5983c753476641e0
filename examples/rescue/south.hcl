# The station in the south has a helicopter, which flies where its desk sends it.
terrarium { name = "south" }

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
