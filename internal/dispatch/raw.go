package dispatch

import (
	"context"
	"io"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// maxRaw bounds what is kept of a CLI's output as it came. Its name of the
// conversation stands at the beginning, or the output is short.
const maxRaw = 8 << 20

// raw keeps a CLI's output as it came, in memory and for as long as it runs.
// What is stored has no secrets in it, and the name of a conversation, which is
// needed to go on with it, looks like one.
type raw struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps what there is room for.
func (r *raw) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p[:min(len(p), maxRaw-len(r.text))]...)
	return len(p), nil
}

func (r *raw) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}

// drive holds the conversation of a launch and keeps what is said. A launch
// without a channel is given its input and listened to.
func (r *raw) drive(hold inrun.Drive, stdin []byte) inrun.Drive {
	return func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
		log = io.MultiWriter(log, r)
		if hold != nil {
			return hold(ctx, in, out, log)
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := in.Write(stdin)
			if cerr := in.Close(); err == nil {
				err = cerr
			}
			wrote <- err
		}()
		_, err := io.Copy(log, out)
		<-wrote // a CLI that does not read its input has its reasons, and its exit code
		return err
	}
}
