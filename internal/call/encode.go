package call

import (
	"encoding/hex"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendJSON appends the decision as JSON. Every call that is let through is
// written down, and most of what was said about it was said about others
// before: ballots that were made in advance are copied.
func (d *Decision) AppendJSON(dst []byte) ([]byte, error) {
	if len(d.Requires) > 0 || d.Pinned || d.TakesCode {
		text, err := json.Marshal(d) // not the common case
		return append(dst, text...), err
	}
	dst = append(append(append(dst, `{"level":"`...), d.Level.String()...), `","ballots":[`...)
	for i := range d.Ballots {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = d.Ballots[i].appendJSON(dst); err != nil {
			return dst, err
		}
	}
	dst = append(dst, ']')
	dst = appendDigest(dst, `,"digest":"`, d.Digest)
	dst = appendDigest(dst, `,"world":"`, d.World)
	dst = appendDigest(dst, `,"policy":"`, d.Policy)
	return append(dst, '}'), nil
}

// appendJSON appends the ballot: as it was made in advance, or by hand where its votes say no more than most.
func (b *Ballot) appendJSON(dst []byte) ([]byte, error) {
	switch {
	case b.encoded != nil:
		return append(dst, b.encoded...), nil
	case b.Conflicts != nil || slices.ContainsFunc(b.Votes, func(v Vote) bool { return v.Need != nil || v.Evidence != nil }):
		text, err := json.Marshal(plainBallot(*b))
		return append(dst, text...), err
	}
	w := Writer{Text: dst}
	w.String(`{"stage":`, b.Stage.String())
	w.String(`,"level":`, b.Level.String())
	w.Raw(`,"votes":[`)
	for i, v := range b.Votes {
		w.True(`,`, i > 0)
		w.String(`{"stage":`, v.Stage.String())
		w.String(`,"source":`, v.Source)
		w.String(`,"rule":`, v.Rule)
		w.String(`,"level":`, v.Level.String())
		w.String(`,"reason":`, v.Reason)
		w.Raw(`}`)
	}
	w.Raw(`]}`)
	return w.Text, w.Err
}

func appendDigest(dst []byte, name string, d Digest) []byte {
	return append(hex.AppendEncode(append(dst, name...), d[:]), '"')
}

// AppendJSON appends the call as JSON. Its arguments are in their canonical form.
func (c *Call) AppendJSON(dst []byte) ([]byte, error) {
	if c.Endpoint != 0 || c.ElementType != "" || c.Note != "" || c.Parent != "" || c.HostID != "" || c.Correlation != "" || c.Tool != nil {
		text, err := json.Marshal(c) // not the common case
		return append(dst, text...), err
	}
	w := Writer{Text: append(dst, '{')}
	if c.ID != "" {
		w.String(`"id":`, c.ID)
		w.Raw(`,`)
	}
	w.String(`"kind":`, c.Kind.String())
	w.String(`,"surface":`, c.Surface)
	w.String(`,"principal":{"agent":`, c.Principal.Agent)
	w.String(`,"session":`, c.Principal.Session)
	if c.Principal.Path != "" {
		w.String(`,"path":`, c.Principal.Path)
	}
	w.String(`},"operation":`, c.Operation)
	if c.Args != nil {
		w.Raw(`,"args":`)
		w.Text = append(w.Text, c.Args...)
	}
	if c.Dir != "" {
		w.String(`,"dir":`, c.Dir)
	}
	if c.Forward != nil {
		w.Raw(`,"forward":[`)
		for i, f := range c.Forward {
			w.True(`,`, i > 0)
			w.String(`{"name":`, f.Name)
			w.String(`,"value":`, f.Value)
			w.Raw(`}`)
		}
		w.Raw(`]`)
	}
	w.True(`,"held":true`, c.Held)
	w.True(`,"sessionless":true`, c.Sessionless)
	w.True(`,"rewrites":true`, c.Rewrites)
	w.Raw(`}`)
	return w.Text, w.Err
}

// Writer writes JSON for those who know what comes next.
type Writer struct {
	Text []byte
	// Err is of the first string that is no text.
	Err error
}

// Raw writes text as it is.
func (w *Writer) Raw(text string) { w.Text = append(w.Text, text...) }

// True writes text if something is so.
func (w *Writer) True(text string, is bool) {
	if is {
		w.Text = append(w.Text, text...)
	}
}

// String writes text as it is, and then a string.
func (w *Writer) String(text, s string) {
	out, err := jsontext.AppendQuote(append(w.Text, text...), s)
	if w.Text = out; w.Err == nil {
		w.Err = err
	}
}

// AppendVotes appends every vote of every stage as one JSON list.
func (d *Decision) AppendVotes(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	for i := range d.Ballots {
		b := &d.Ballots[i]
		text := b.votes
		if text == nil {
			var err error
			if text, err = json.Marshal(b.Votes); err != nil {
				return dst, err
			}
		}
		if len(b.Votes) > 0 && dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, text[1:len(text)-1]...)
	}
	return append(dst, ']'), nil
}
