session { durability = "full" } # the system may cut the power

channel "notes" {}

creature "counter" {
  module = "builtin:tally"
  listen = [channel.notes]
}
