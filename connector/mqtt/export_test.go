package mqtt

// HashOf is what a source remembers of the content of a message without properties.
func HashOf(topic, payload string, qos byte) uint32 {
	return contentHash(&message{topic: topic, payload: []byte(payload), qos: qos})
}
