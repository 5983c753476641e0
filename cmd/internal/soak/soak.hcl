# What the soak runs: pairs of lanes, which merge and part, clocks, and a creature that is asked.
variable "pairs" {
  type    = number
  default = 4
}

locals { lanes = toset([for n in range(0, 2 * var.pairs) : format("%02d", n)]) }

session { durability = "normal" }

channel "in" { for_each = local.lanes }
channel "out" { for_each = local.lanes }
channel "ticks" { for_each = local.lanes }

# Hands on what it gets, on all channels that it may send on: also to the other lane of its
# pair, while they are joined.
creature "lane" {
  for_each = local.lanes
  module   = "builtin:echo"
  listen   = [channel.in[each.key]]
  send     = [channel.out[each.key]]
}

# Counts the firings of a timer, in its state.
creature "clock" {
  for_each = local.lanes
  module   = "builtin:js"
  config   = { script = file("clock.js") }
  listen   = [channel.out[each.key]]
  send     = [channel.ticks[each.key]]
}

creature "asked" {
  module = "builtin:tally"
}
