# The station in the south, as in ../south.hcl, but other graphs may merge with it.
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
