package journal

// LetterOf returns the dead letter of a logged message. The caller sets the creature that
// does not get the message.
func LetterOf(ev *Event, reason DeadReason) DeadLetterRow {
	return DeadLetterRow{
		Message: ev.ID, Kind: ev.Kind, Channel: ev.Channel, Seq: ev.Seq, Sender: ev.Creature,
		Reason: reason, Headers: ev.Headers, Payload: ev.Payload,
	}
}

// Event returns the event of a dead letter, which must already have its id and time. turn
// is the turn that sent the message, if the message reached no creature. reader is the
// name of the outside reader that does not get the message, or empty.
func (l *DeadLetterRow) Event(turn EventID, reader string) Event {
	return Event{
		ID: l.ID, Time: l.Time, Kind: EventDeadLetter, Creature: l.Creature, Turn: turn,
		Attempt: l.Attempts, Channel: l.Channel, Seq: l.Seq, Cause: l.Message,
		Payload: JSON(DeadLetterPayload{
			Message: l.Message, Reason: l.Reason, Creature: l.Creature, Reader: reader, Channel: l.Channel,
			Seq: l.Seq, Alias: l.Alias, Attempts: l.Attempts, Error: l.Error, LastWords: l.LastWords,
		}),
	}
}
