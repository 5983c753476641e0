variable "broker" {
  type = string
}

channel "temperatures" {}

source "mqtt" "sensors" {
  channel       = channel.temperatures
  broker        = var.broker
  version       = "3.1.1"
  client_id     = "bench"
  topics        = ["home/+/temperature"]
  max_in_flight = 1000
}

creature "count" {
  module = "builtin:tally"
  listen = [channel.temperatures]
}
