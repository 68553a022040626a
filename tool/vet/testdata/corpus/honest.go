// Executors that do what tools do every day and touch nothing.

package corpus

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"container/heap"
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"image"
	"image/png"
	"io"
	"io/fs"
	"iter"
	"log"
	"log/slog"
	"maps"
	"math/big"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/fstest"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

// want:
var _ = tool.New(tool.Spec{Name: "t_pure_math", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strconv.Itoa(len(in.Path) * 2), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_strings_builder", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, "%d", i)
	}
	return b.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_json", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := json.Marshal(in)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_csv", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.Write([]string{in.Path})
	w.Flush()
	return b.String(), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_gzip", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(in.Path))
	return b.String(), errors.Join(err, z.Close())
})

// want:
var _ = tool.New(tool.Spec{Name: "t_zip_memory", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := zip.NewReader(strings.NewReader(in.Path), int64(len(in.Path)))
	if err != nil {
		return "", err
	}
	return r.Comment, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_sha", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(in.Path))), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_hmac", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m := hmac.New(sha256.New, []byte("k"))
	m.Write([]byte(in.Path))
	return fmt.Sprintf("%x", m.Sum(nil)), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_template", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b strings.Builder
	t, err := template.New("x").Parse("{{.Path}}")
	if err != nil {
		return "", err
	}
	return b.String(), t.Execute(&b, in)
})

// want:
var _ = tool.New(tool.Spec{Name: "t_regexp", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return regexp.MustCompile(`a+`).FindString(in.Path), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_sort", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	xs := strings.Split(in.Path, "")
	slices.SortFunc(xs, strings.Compare)
	return strings.Join(xs, ""), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_time", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return time.Now().In(time.UTC).Format(time.RFC3339), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_filepath", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return filepath.Join(filepath.Dir(in.Path), filepath.Base(in.Path)), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_url", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	u, err := url.Parse(in.Path)
	if err != nil {
		return "", err
	}
	return u.Query().Get("q"), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_netip", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	a, err := netip.ParseAddr(in.Path)
	return a.String(), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_parse_ip", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return net.ParseIP(in.Path).String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_http_header", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	h := http.Header{}
	h.Set("A", in.Path)
	return h.Get("A"), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_http_status", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return http.StatusText(404), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_request_only", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", in.Path, nil)
	if err != nil {
		return "", err
	}
	return req.URL.Host, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_recorder", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	rec := httptest.NewRecorder()
	rec.WriteString(in.Path)
	return rec.Body.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_errgroup_like", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 3 {
		wg.Go(func() { mu.Lock(); defer mu.Unlock(); n++ })
	}
	wg.Wait()
	return strconv.Itoa(n), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_context", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return "", ctx.Err()
})

// want:
var _ = tool.New(tool.Spec{Name: "t_once", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	v := sync.OnceValue(func() string { return strings.ToUpper(in.Path) })
	return v(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_iter", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	n := 0
	for range counting(3) {
		n++
	}
	return strconv.Itoa(n), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_maps", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m := map[string]int{in.Path: 1}
	return strings.Join(slices.Sorted(maps.Keys(m)), ","), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_interface_pure", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = memoryKeeper{}
	return "", k.keep(in.Path)
})

// want:
var _ = tool.New(tool.Spec{Name: "t_stringer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprint(loud(in.Path)), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_generic", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return cell[string]{in.Path}.v, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_log_buffer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	log.New(&b, "", 0).Print(in.Path)
	return b.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_slog_buffer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info(in.Path)
	return b.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_stderr", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	fmt.Fprintln(os.Stderr, in.Path)
	return "", nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_parse_source", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := parser.ParseExpr(in.Path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(f.Pos()), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_parse_file", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", in.Path, 0)
	if err != nil {
		return "", err
	}
	return f.Name.Name, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_template_methods", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	t, err := template.New("x").Parse(in.Path)
	if err != nil {
		return "", err
	}
	return "", t.Execute(io.Discard, map[string]any{"a": loud("x"), "now": time.Now()})
})

// want:
var _ = tool.New(tool.Spec{Name: "t_format", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := format.Source([]byte(in.Path))
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_embed", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := assets.ReadFile("parts.go")
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_fstest", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := fs.ReadFile(fstest.MapFS{"a": {Data: []byte("x")}}, "a")
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_handle", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := env.ReadFile(in.Path)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_handle_http", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := env.HTTP().Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
})

// want:
var _ = tool.New(tool.Spec{Name: "t_handle_passed", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return viaClient(env.HTTP(), in.Path)
})

// want:
var _ = tool.New(tool.Spec{Name: "t_handle_run", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	o, err := env.Run(ctx, "git", "status")
	if err != nil {
		return "", err
	}
	return o.Stdout, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_rand", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strconv.Itoa(rand.IntN(10)), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_crypto_rand", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return crand.Text(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_big", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return new(big.Int).SetInt64(3).String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_xml", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := xml.Marshal(in)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_base64", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(in.Path)), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_errors", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	if errors.Is(os.ErrNotExist, fs.ErrNotExist) {
		return "", &os.PathError{Op: "x", Err: os.ErrInvalid}
	}
	return "", nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_getpid", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strconv.Itoa(os.Getpid()), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_runtime", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return runtime.GOOS + runtime.Version(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_type_reflect", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return reflect.TypeFor[input]().Name(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_reflect_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return reflect.ValueOf(in).Field(0).String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_deepequal", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strconv.FormatBool(reflect.DeepEqual(in, input{})), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_tabwriter", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 1, 0, 0)
	fmt.Fprint(w, in.Path)
	return b.String(), w.Flush()
})

// want:
var _ = tool.New(tool.Spec{Name: "t_image", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1)))
	return b.String(), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_writes_declared", Policy: writerPolicy}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.Create(in.Path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	fmt.Fprint(w, "x")
	return "", errors.Join(w.Flush(), f.Close())
})

// want:
var _ = tool.New(tool.Spec{Name: "t_visitor", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	n := 0
	ast.Inspect(nil, func(ast.Node) bool { n++; return true })
	return strconv.Itoa(n), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_heap", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	h := &ints{3, 1}
	heap.Init(h)
	return fmt.Sprint(*h), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_pipe", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, w := io.Pipe()
	go func() { _, _ = w.Write([]byte("x")); _ = w.Close() }()
	b, err := io.ReadAll(r)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_x509_parse", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c, err := x509.ParseCertificate([]byte(in.Path))
	if err != nil {
		return "", err
	}
	return c.Subject.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_mime_parse", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m, _, err := mime.ParseMediaType(in.Path)
	return m, err
})

// want:
var _ = tool.New(tool.Spec{Name: "t_multipart", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	return w.FormDataContentType(), w.Close()
})

// want:
var _ = tool.New(tool.Spec{Name: "t_fixed_zone", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return time.FixedZone("x", 3600).String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "t_atomic", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var n atomic.Int64
	n.Add(1)
	return strconv.FormatInt(n.Load(), 10), nil
})

func counting(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

type loud string

func (l loud) String() string { return strings.ToUpper(string(l)) }

type ints []int

func (h ints) Len() int           { return len(h) }
func (h ints) Less(i, j int) bool { return h[i] < h[j] }
func (h ints) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ints) Push(x any)        { *h = append(*h, x.(int)) }
func (h *ints) Pop() any          { return nil }

func viaClient(c *http.Client, u string) (string, error) {
	r, err := c.Get(u)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
}

var nothing = &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}
