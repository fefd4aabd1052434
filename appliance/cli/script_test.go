package cli_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"basalt": func() { os.Exit(cli.Main(context.Background(), os.Args[1:])) },
	})
}

// TestScripts runs every script with its own server, an operator's key, and a simulated node
// that does what instances request.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: false,
		Setup: func(env *testscript.Env) error {
			e := servertest.Start(t, nil)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- e.Node.Play(ctx) }()
			env.Defer(func() {
				cancel()
				if err := <-done; err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
			env.Setenv("BASALT_SERVER", e.URL)
			env.Setenv("BASALT_TOKEN", e.Token)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			env.Values["env"] = e
			env.Values["machines"] = map[string]*machine{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// node: a node and a GPU report themselves.
			"node": func(ts *testscript.TestScript, _ bool, _ []string) {
				e := ts.Value("env").(*servertest.Env)
				e.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-0123456789ab", Name: "n1", Data: api.Encode(api.NodeStatus{
					Vcpus: 8, MemoryBytes: 16 << 30, StorageBytes: 1 << 40, StorageFreeBytes: 1 << 39, Accelerator: "tcg", Version: "v0",
					Processors: api.NodeProcessors{CPUs: 16, InstancesMilliCPUs: 13375, VCPUsPerCPU: 4, Parts: []api.NodeProcessorPart{
						{Name: api.NodePartSystem, Count: 1, MilliCPUs: 500}, {Name: api.NodePartBasalt, Count: 1, MilliCPUs: 125}, {Name: api.NodePartOSDs, Count: 2, MilliCPUs: 2000}}}})},
					api.Command{Op: api.OpReport, Kind: api.KindGPU, ID: "gpu-0123456789ab", Name: "n1-gpu0", Data: api.Encode(api.GPUStatus{
						Node: "node-0123456789ab", Model: "Soft GPU", Driver: "soft", VramBytes: 8 << 30, VramUsedBytes: 1 << 30, Vgpus: 1})},
					api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-0123456789ab", Organization: "org-0", Project: "prj-0",
						Data: []byte(`{"meter":"gpu-nanoseconds","resource":"ins-1","resourceName":"demo","start":"2026-03-01T00:00:00Z","end":"2026-03-01T00:01:00Z","quantity":1500000000}`)})
			},
			// full REASON WAITING: no node has room, for that reason, and so many instances
			// wait; without a reason there is room again.
			"full": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.ParseInt(args[1], 10, 64)
				ts.Check(err)
				ts.Value("env").(*servertest.Env).Room.Fill(args[0], false, n)
			},
			// disk: the node's disk reports itself.
			"disk": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Value("env").(*servertest.Env).Apply(t, api.Command{Op: api.OpReport, Kind: api.KindDisk, ID: "disk-0123456789ab", Name: "n1-sdb",
					Data: api.Encode(api.DiskStatus{Node: "node-0123456789ab", Path: "/dev/sdb", Model: "Fast", Serial: "S1", SizeBytes: 1 << 40, State: api.DiskFree, Osd: -1})})
			},
			// says KIND NAME ASSIGNMENT STATUS: writes what other parts of the cluster would
			// report.
			"says": func(ts *testscript.TestScript, _ bool, args []string) {
				e := ts.Value("env").(*servertest.Env)
				kind := api.Kind(args[0])
				page, err := e.Store.List(context.Background(), api.ListQuery{Kind: kind, Name: args[1], Limit: 10})
				if err != nil || len(page.Items) != 1 {
					ts.Fatalf("list of %s %s = %v, %v; want one object", kind, args[1], page.Items, err)
				}
				id := page.Items[0].Meta.ID
				e.Apply(t, api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: []byte(args[2])},
					api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: []byte(args[3])})
			},
			"machine": startMachine,
			"medium":  makeMedium,
			// cut FILE BYTES: writes the first BYTES of FILE to cut.iso; a negative number
			// omits that many bytes at the end.
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				whole := ts.ReadFile(args[0])
				if n < 0 {
					n += len(whole)
				}
				ts.Check(os.WriteFile(ts.MkAbs("cut.iso"), []byte(whole[:n]), 0o600))
			},
			"rebuilt": rebuilt,
			"code":    exitCode,
			// sent FILE…: verifies that the server has received these packages.
			"sent": func(ts *testscript.TestScript, _ bool, args []string) {
				e := ts.Value("env").(*servertest.Env)
				for _, name := range args {
					content := ts.ReadFile(name)
					if got := e.Packages.Size(fmt.Sprintf("%x", sha256.Sum256([]byte(content)))); got != int64(len(content)) {
						ts.Fatalf("%s: server has received %d bytes, want %d", name, got, len(content))
					}
				}
			},
			// keep NAME REGEXP: sets $NAME to what the group of REGEXP matches in the last
			// output.
			"keep": func(ts *testscript.TestScript, _ bool, args []string) {
				m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
				if m == nil {
					ts.Fatalf("output does not match %s", args[1])
				}
				ts.Setenv(args[0], m[1])
			},
			// plain FILE: replaces IDs, ages and tokens, which differ between runs.
			"plain": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, name := range args {
					text := ts.ReadFile(name)
					for _, r := range [][2]string{
						{`bslt_key-[0-9a-f]{12}_[0-9a-f]{64}`, "TOKEN"},
						{`\b(org|prj|key|pool|flv|img|vol|ins|acc|pb|net|sg|ext|fip|lb|snap|bt|bak|ceph)-[0-9a-f]{12}\b`, "$1-xxxxxxxxxxxx"},
						{`\b[0-9]+[sm] +((org|prj|key|pool|flv|img|vol|ins|acc|pb|node|gpu|net|sg|ext|fip|lb|snap|bt|bak|ceph|disk)-)`, "AGE   $1"},
						{`"(createdAt|updatedAt)": "[^"]*"`, `"$1": "TIME"`},
						{`127\.0\.0\.1:[0-9]+`, "HOST"},
					} {
						text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
					}
					if name == "stdout" || name == "stderr" {
						name += ".txt"
					}
					if err := os.WriteFile(ts.MkAbs(strings.TrimSpace(name)), []byte(text), 0o600); err != nil {
						ts.Fatalf("%v", err)
					}
				}
			},
		},
	})
}
