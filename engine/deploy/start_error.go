package deploy

import (
	"errors"

	"github.com/seed47132306/terrarium/abi"
)

// StartError says which creature of a deployment cannot begin.
type StartError struct {
	Deployment, Address string
	Where               string // as in [CreatureSpec]
	Err                 error
}

// Error says where it stands, which one it is, and why.
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

// Reason is why it cannot begin: what the guest or the host says, without the steps on
// the way there.
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
