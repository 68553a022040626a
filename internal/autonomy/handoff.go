package autonomy

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// handoffLife is how long a handoff waits to be taken up.
const handoffLife = 24 * time.Hour

// handoffPrefix tells a handoff from other secrets.
const handoffPrefix = "ghh_"

// handoff is what a token says. The execution itself stays in the store: a
// token carries nothing that could be changed on the way.
type handoff struct {
	Execution string    `json:"x"`
	Nonce     string    `json:"n"`
	To        string    `json:"to"`
	Expires   time.Time `json:"exp"`
	MAC       []byte    `json:"mac"`
}

func (k *Keeper) handoffRow(h *handoff) *keyring.Row {
	return k.keys.Row("handoff").Text(h.Execution, h.Nonce, h.To).Time(h.Expires)
}

// Handoff passes an execution on and returns the token with which to, or the
// same agent if it is "", takes it up, once. Until then nothing happens in it.
func (k *Keeper) Handoff(tx *store.Tx, agent, id, to string) (token string, expires time.Time, err error) {
	x, err := k.load(tx, agent, id)
	if err != nil {
		return "", expires, err
	}
	if x.State != Running && x.State != Paused {
		return "", expires, ErrOver
	}
	now, err := tx.Now()
	if err != nil {
		return "", expires, err
	}
	if to == "" {
		to = agent
	}
	h := handoff{Execution: id, To: to, Expires: now.Add(handoffLife).Truncate(time.Microsecond)}
	if h.Nonce, err = keyring.NewID("", k.keys.Random()); err != nil {
		return "", expires, err
	}
	h.MAC = k.handoffRow(&h).Sum()
	x.State, x.handoff = Handed, h.Nonce
	if err := k.save(tx, x); err != nil {
		return "", expires, err
	}
	body, err := json.Marshal(h)
	return handoffPrefix + base64.RawURLEncoding.EncodeToString(body), h.Expires, err
}

// Resume takes an execution up for the principal that the handoff is for. It
// goes on where it was: its counts are what they were, and one that was paused
// is paused.
func (k *Keeper) Resume(tx *store.Tx, p call.Principal, token string) (*Execution, error) {
	text, ok := strings.CutPrefix(token, handoffPrefix)
	body, err := base64.RawURLEncoding.DecodeString(text)
	var h handoff
	if !ok || err != nil || json.Unmarshal(body, &h, json.RejectUnknownMembers(true)) != nil || !k.handoffRow(&h).Is(h.MAC) {
		return nil, ErrHandoff
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	if h.To != p.Agent || !now.Before(h.Expires) {
		return nil, ErrHandoff
	}
	x, err := k.scan(tx.QueryRow(`SELECT `+executionColumns+` FROM execution WHERE id = $1`+tx.ForUpdate(), h.Execution))
	if err != nil {
		return nil, err
	}
	if x.State != Handed || x.handoff != h.Nonce {
		return nil, ErrHandoff
	}
	x.State, x.handoff, x.Principal = Running, "", p
	if x.Pause != "" {
		x.State = Paused
	}
	return x, k.save(tx, x)
}
