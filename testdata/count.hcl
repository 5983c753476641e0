terrarium {
  name = "count"
}

channel "lines" {}
channel "sums" {}

creature "counts" {
  module = "builtin:tally"
  listen = [channel.lines]
  send   = [channel.sums]
  config = { key = "field:1", every = 3 }
}
