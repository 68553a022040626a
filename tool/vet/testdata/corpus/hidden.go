// Executors that do more behind helpers, interfaces, closures, goroutines,
// generics, reflection.

package corpus

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"time"
	_ "unsafe" // for linkname

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/helper"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/policies"
)

// want: write
var _ = tool.New(tool.Spec{Name: "h_helper", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", saveLocal(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_deep", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", one(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_other_package", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Save(in.Path, nil)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_closure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := func() error { return os.Remove(in.Path) }
	return "", f()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_closure_var", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var f func() error
	f = func() error { return exec.Command("true").Run() }
	return "", f()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_goroutine", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	done := make(chan error)
	go func() { done <- os.Remove(in.Path) }()
	return "", <-done
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_defer", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	defer os.Remove(in.Path)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := os.Remove
	return "", f(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_table", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", table["go"](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_method_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := (&saver{}).save
	return "", f(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_method_expr", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := (*saver).save
	return "", f(&saver{}, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = diskKeeper{}
	return "", k.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface_choice", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = memoryKeeper{}
	if in.Path != "" {
		k = diskKeeper{}
	}
	return "", k.keep(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_interface_param", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", keepWith(execKeeper{}, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface_field", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b := box{k: diskKeeper{}}
	return "", b.k.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_embedded_struct", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	w := wrapper{diskKeeper{}}
	return "", w.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_embedded_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	w := lazy{keeper: diskKeeper{}}
	return "", w.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_other_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	s := helper.NewDisk("/x")
	return "", s.Put("a", in.Path)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_other_global", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Default.Put("a", in.Path)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_other_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Hook()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_callback", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Run(func() error { return exec.Command("true").Run() })
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_callback_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Run(exec.Command("true").Run)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	helper.Each([]string{in.Path}, func(s string) { os.Remove(s) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic_constraint", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", keepAll[diskKeeper](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic_other", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.PutAll(localStore{})
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_generic_type", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := pair[execKeeper]{}
	return "", p.do(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_io_writer", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**"), Write: tool.None}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := io.Copy(logFile, strings.NewReader(in.Path))
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_captured_file", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := fmt.Fprintln(logFile, in.Path)
	return "", err
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_once", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var o sync.Once
	var err error
	o.Do(func() { err = exec.Command("true").Run() })
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_afterfunc", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	time.AfterFunc(time.Second, func() { os.Remove(in.Path) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_recursive", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", recurse(3, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_global_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", remover(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_struct_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	s := steps{run: runTrue}
	return "", s.run()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_map_closure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m := map[string]func(string) error{"a": saveLocal}
	return "", m["a"](in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_channel", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := make(chan func() error, 1)
	c <- runTrue
	return "", (<-c)()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_returned", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", makeRemover()(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_any", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var x any = diskKeeper{}
	return "", x.(keeper).keep(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_type_switch", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var x any = execKeeper{}
	switch k := x.(type) {
	case keeper:
		return "", k.keep(in.Path)
	}
	return "", nil
})

// want: opaque write
var _ = tool.New(tool.Spec{Name: "h_reflect", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	reflect.ValueOf(os.Remove).Call([]reflect.Value{reflect.ValueOf(in.Path)})
	return "", nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_reflect_method", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	reflect.ValueOf(diskKeeper{}).MethodByName("keep").Call(nil)
	return "", nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_linkname", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprint(linked()), nil
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_round_tripper", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var rt http.RoundTripper = http.DefaultTransport
	r, err := http.NewRequest("GET", in.Path, nil)
	if err != nil {
		return "", err
	}
	_, err = rt.RoundTrip(r)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_conn", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := conn.Write([]byte(in.Path))
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_policy_elsewhere", Policy: &policies.Nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, nil
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_policy_variable", Policy: writerPolicy}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", runTrue()
})
