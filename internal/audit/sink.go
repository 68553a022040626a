package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
)

// Sink keeps checkpoints where the gate cannot rewrite them: whoever holds the signing key could sign another history,
// but not take back what was published. Publish may see a checkpoint more than once.
type Sink interface {
	Publish(ctx context.Context, c Checkpoint) error
}

// FileSink appends checkpoints to a file, best one that belongs to another user or is append-only to this one.
type FileSink struct{ Path string }

// Publish appends the checkpoint and a blank line, and syncs.
func (s FileSink) Publish(_ context.Context, c Checkpoint) error {
	f, err := os.OpenFile(s.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(bytes.Clone(c.Note), '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// WebhookSink posts checkpoints as text. Client nil means http.DefaultClient.
type WebhookSink struct {
	URL    string
	Client *http.Client
}

// Publish posts the checkpoint and expects an answer in the 200s.
func (s WebhookSink) Publish(ctx context.Context, c Checkpoint) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(c.Note))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", resp.Status)
	}
	return nil
}

// LogSink writes checkpoints to a logger, whose lines go to the system's journal.
type LogSink struct{ Logger *slog.Logger }

// Publish logs the checkpoint with its signed text.
func (s LogSink) Publish(ctx context.Context, c Checkpoint) error {
	s.Logger.InfoContext(ctx, "audit checkpoint", "size", c.Size, "root", c.Root.String(), "note", string(c.Note))
	return nil
}
