package deploy

import (
	"errors"

	"github.com/seed47132306/terrarium/abi"
)

// StartError says which creature of a deployment cannot start.
type StartError struct {
	Deployment, Address string
	Where               string // as in [CreatureSpec]
	Err                 error
}

// Error gives the position, the creature and the reason.
func (e *StartError) Error() string {
	text := e.Address + ": " + e.Reason()
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	if remedy := e.remedy(); remedy != "" {
		text += "; " + remedy
	}
	return text
}

func (e *StartError) Unwrap() error { return e.Err }

// Reason is why it cannot start: the message of the guest or the host, without the
// intermediate steps.
func (e *StartError) Reason() string {
	var cause *abi.Error
	if !errors.As(e.Err, &cause) {
		return e.Err.Error()
	}
	bare := *cause
	bare.Remedy = ""
	return bare.Error()
}

func (e *StartError) remedy() string {
	var cause *abi.Error
	if errors.As(e.Err, &cause) {
		return cause.Remedy
	}
	return ""
}
