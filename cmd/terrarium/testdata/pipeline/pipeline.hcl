# Two pipelines of the same shape, and a bridge that belongs to neither:
#
#   in.0 ─► first.0 ─┐
#                    ├─► mid ─► relay ─► late ─► second ─► checked ─► gate ─► out ─► last
#   in.1 ─► first.1 ─┘                                                         └──► count
terrarium { name = "pipelines" }

variable "durability" { type = string }

session { durability = var.durability }

locals {
  sides = toset(["a", "b"])
  feeds = toset(["a0", "a1", "b0", "b1"])
}

channel "in"      { for_each = local.feeds }
channel "mid"     { for_each = local.sides }
channel "late"    { for_each = local.sides }
channel "checked" { for_each = local.sides }
channel "out"     { for_each = local.sides }
channel "own"     {}

creature "first" {
  for_each = local.feeds
  module   = "${path.recipe}/ledger.wasm"
  listen   = [channel.in[each.key]]
  send     = [channel.mid[substr(each.key, 0, 1)]]
}

creature "relay" {
  for_each = local.sides
  module   = "builtin:relay"
  listen   = [channel.mid[each.key]]
  send     = [channel.late[each.key]]
}

creature "second" {
  for_each = local.sides
  module   = "${path.recipe}/ledger.wasm"
  listen   = [channel.late[each.key]]
  send     = [channel.checked[each.key]]
}

creature "gate" {
  for_each = local.sides
  module   = "builtin:gate"
  listen   = [channel.checked[each.key]]
  send     = [channel.out[each.key]]
  config   = { match = "^${each.key}[01]" }
}

creature "last" {
  for_each = local.sides
  module   = "${path.recipe}/ledger.wasm"
  listen   = [channel.out[each.key]]
}

creature "count" {
  for_each = local.sides
  module   = "builtin:tally"
  listen   = [channel.out[each.key]]
  config   = { key = "field:1" }
}

creature "bridge" {
  module = "builtin:tally"
  listen = [channel.own]
  config = { key = "field:1" }
}
