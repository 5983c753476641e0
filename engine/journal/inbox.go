package journal

const inboxPrefix = "inbox:"

// InboxOf returns the channel id of a creature's inbox.
func InboxOf(c CreatureID) ChannelID { return ChannelID(inboxPrefix + string(c)) }

// InboxOwner is the creature that owns an inbox, or "" for any other channel.
func InboxOwner(c ChannelID) CreatureID {
	if !IsInbox(c) {
		return ""
	}
	return CreatureID(c[len(inboxPrefix):])
}

// IsInbox reports whether a channel is the inbox of a creature.
func IsInbox(c ChannelID) bool {
	return len(c) > len(inboxPrefix) && c[:len(inboxPrefix)] == inboxPrefix
}
