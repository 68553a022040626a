package job

import "time"

// A CLI is left alone after this many failures in a row, for this long.
const (
	breakerFailures = 5
	breakerRest     = time.Minute
)

// breaker keeps a CLI that does not work from being started again and again.
type breaker struct {
	failures int
	opened   time.Time
}

// allows says whether a start may be tried: after the rest, one is.
func (b *breaker) allows(now time.Time) bool {
	if b.failures < breakerFailures {
		return true
	}
	if now.Sub(b.opened) < breakerRest {
		return false
	}
	b.opened = now // the one that is tried; the others wait for what becomes of it
	return true
}

// breaker is guarded by mu.
func (j *Jobs) breaker(cli string) *breaker {
	b := j.breakers[cli]
	if b == nil {
		b = &breaker{}
		j.breakers[cli] = b
	}
	return b
}

// outcome notes whether a CLI worked: that it started, and did not hang.
func (j *Jobs) outcome(cli string, worked bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.breaker(cli)
	if worked {
		b.failures = 0
		return
	}
	if b.failures++; b.failures >= breakerFailures {
		b.opened = time.Now()
	}
}
