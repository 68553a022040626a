package console_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdp "github.com/chromedp/chromedp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// browser is a tab of a real Chromium, signed in to a console.
type browser struct {
	t    *testing.T
	ctx  context.Context
	desk *desk
	url  string
}

// start starts the browser; its tabs are opened with open.
func start(t *testing.T) context.Context {
	t.Helper()
	opts := append(cdp.DefaultExecAllocatorOptions[:], cdp.ExecPath(needtest.Chromium(t)), cdp.NoSandbox, cdp.DisableGPU, cdp.NoFirstRun, cdp.WindowSize(1280, 900))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		opts = append(opts, cdp.Flag(flag, true))
	}
	ctx, cancel := cdp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = cdp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := cdp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// open starts a console, opens a tab and signs in.
func open(t *testing.T, ctx context.Context) *browser {
	t.Helper()
	d := newDesk()
	d.fill()
	c := console.New(console.Options{Desk: d})
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = cdp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t, ctx, d, srv.URL}
	b.do(
		cdp.EmulateViewport(1280, 860),
		cdp.Navigate(srv.URL+"/signin?token=good-link"),
		cdp.Click(cdp.CSS(`[data-test=sign-in]`)),
		cdp.WaitVisible(cdp.CSS(`#inbox`)),
	)
	b.ready()
	return b
}

// ready waits until the page's script has run.
func (b *browser) ready() {
	b.t.Helper()
	b.until(`"ready" in (document.body?.dataset ?? {})`)
}

func (b *browser) do(steps ...cdp.Action[cdp.Void]) {
	b.t.Helper()
	if err := cdp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval runs an expression in the page and returns its value.
func eval[T any](b *browser, js string) T {
	b.t.Helper()
	v, err := cdp.Run(b.ctx, cdp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits for an expression to become true.
func (b *browser) until(js string) {
	b.t.Helper()
	for range 1200 {
		v, err := cdp.Run(b.ctx, cdp.Evaluate[bool](js))
		switch {
		case err != nil && !strings.Contains(err.Error(), "navigated"):
			b.t.Fatalf("%s: %v", js, err)
		case err == nil && v:
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("never became true: %s", js)
}

func (b *browser) scheme(value string) {
	b.t.Helper()
	b.do(cdp.Func(func(ctx context.Context, _ *cdp.Target) error {
		_, err := cdp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return err
	}))
}

var pages = []string{"/", "/requests/r-7c21", "/requests/r-7c23", "/requests/r-7c24", "/live", "/log", "/log/rec-006", "/runs", "/runs/job_on", "/runs/job_over", "/sessions", "/grants", "/budgets", "/policy", "/servers", "/kill", "/people"}

// TestScreenshots takes pictures for people to look at; the README has one.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("CONSOLE_SCREENSHOTS")
	if dir == "" {
		t.Skip("set CONSOLE_SCREENSHOTS to a directory to get pictures of the pages")
	}
	b := open(t, start(t))
	shot := func(name string) {
		png, err := cdp.Run(b.ctx, cdp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The picture in the README.
	b.scheme("light")
	b.do(cdp.EmulateViewport(1280, 880), cdp.Navigate(b.url+"/requests/r-7c23"), cdp.Sleep(1200*time.Millisecond))
	png, err := cdp.Run(b.ctx, cdp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "console-request.png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", 1280}, {"dark", "dark", 1280}, {"phone", "light", 390}} {
		b.scheme(look.scheme)
		b.do(cdp.EmulateViewport(look.width, 860))
		for _, p := range pages {
			b.do(cdp.Navigate(b.url+p), cdp.Sleep(1200*time.Millisecond))
			shot(look.name + "-" + strings.ReplaceAll(strings.Trim(p, "/"), "/", "-"))
		}
	}
	b.desk.change(func() {
		b.desk.policy.Broken = []string{"project.toml:3: unknown key alow; did you mean allow?"}
		b.desk.policy.Staged = &admin.StagedPolicy{Since: time.Now(), Changes: []string{"supervised: net.egress:*.github.com from CONFIRM_SESSION to AUTO_APPROVE", "risk.threshold from 61 to 75"}}
		b.desk.kill = admin.Kill{On: true, Reason: "codex writes outside its workspace", By: "bob", At: time.Now()}
		b.desk.people[0].TOTP = true
	})
	b.do(cdp.EmulateViewport(1280, 860))
	for _, p := range []string{"/policy", "/kill", "/requests/r-7c24", "/signin?token=x", "/signin", "/nowhere"} {
		b.do(cdp.Navigate(b.url+p), cdp.Sleep(1200*time.Millisecond))
		shot("loud-" + strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(p), "-"))
	}
}
