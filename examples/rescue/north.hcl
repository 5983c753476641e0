# The station in the north looks after a valley: its scouts note every call, and
# its alarm picks out those that they cannot answer alone.
terrarium { name = "north" }

channel "calls" { description = "PLACE and what happened" }

creature "scouts" {
  module = "builtin:tally"
  listen = [channel.calls]
  config = { key = "field:1" }
}

creature "alarm" {
  module = "builtin:gate"
  listen = [channel.calls]
  config = { match = "avalanche" }
}
