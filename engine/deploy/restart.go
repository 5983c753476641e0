package deploy

import "time"

// WithDefaults is the policy with its zero fields taken from [DefaultRestart].
func (p RestartPolicy) WithDefaults() RestartPolicy {
	d := DefaultRestart
	if p.Attempts == 0 {
		p.Attempts = d.Attempts
	}
	if p.Max == 0 {
		p.Max = d.Max
	}
	if p.Within == 0 {
		p.Within = d.Within
	}
	if p.Backoff == 0 {
		p.Backoff = d.Backoff
	}
	if p.BackoffMax == 0 {
		p.BackoffMax = max(d.BackoffMax, p.Backoff)
	}
	if p.Mode == RestartNever {
		p.Attempts = 1
	}
	return p
}

// Pause is how long to wait after the n-th failed attempt: the backoff, doubled each
// time, less a random part of up to half, so that creatures that failed together do not
// retry together.
func (p RestartPolicy) Pause(n int, jitter func(max time.Duration) time.Duration) time.Duration {
	pause := p.Backoff << min(n-1, 30)
	if pause > p.BackoffMax || pause <= 0 {
		pause = p.BackoffMax
	}
	return pause/2 + jitter(pause/2+1)
}
