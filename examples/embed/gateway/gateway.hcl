# Twenty sensors, each with a channel and a creature of its own that looks for alarms.
locals { sensors = toset([for n in range(1, 21) : format("s%02d", n)]) }

# A power failure loses about ten seconds. Flash memory gets about 360 syncs an hour, and a few more
# whenever the log is copied into its file or the gateway opens.
session {
  durability = "normal"
  sync_every = "10s"
}

channel "readings" { for_each = local.sensors }
channel "alerts" { description = "what the uplink gets" }

creature "guard" {
  for_each = local.sensors
  module   = "builtin:gate"
  listen   = [channel.readings[each.key]]
  send     = [channel.alerts]
  config   = { match = "too (hot|cold)" }
}
