// Package cmd_test holds the tree to the arrows of docs/architecture.md.
package cmd_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/basalt-gpu/basalt/"

// rule: packages under prefix may import of ours only what is listed (a path
// covers what lies below it). The longest prefix that fits decides.
type rule struct {
	prefix string
	allow  []string
	why    string
}

var rules = []rule{
	{"api/server", []string{"api"}, "the server declares the store it needs; main wires a real one"},
	{"api/client", []string{"api"}, "the client knows the API and nothing behind it"},
	{"api/storetest", []string{"api"}, "one conformance suite for every store"},
	{"api/memstore", []string{"api"}, "a fake, which knows no more than the real store"},
	{"api", nil, "the kinds are a leaf: everybody imports them"},
	{"appliance/atomicfile", nil, "a leaf that the daemons of every area may import: files, and nothing of ours"},
	{"appliance/broadcast", nil, "a channel that is closed"},
	{"appliance/strictyaml", nil, "a leaf: files that people write, whatever they say"},
	{"appliance/debugserver", nil, "profiles of this process, whatever it is"},
	{"appliance/cli", []string{"api", "appliance/atomicfile", "appliance/controlplane/catalogue", "appliance/node/hardware", "appliance/release", "hypervisor/iso9660"}, "the CLI is a client of the API, checks the machine that it runs on, and reads media"},
	{"appliance/cmd", []string{""}, "mains are the only wiring"},

	{"appliance/controlplane/store", []string{"api", "appliance/atomicfile", "appliance/broadcast"}, "the store keeps objects; it does not know what they mean"},
	{"appliance/controlplane/store/state", []string{"api"}, "the state machine is a function of the log: it knows no file, no Raft and no other node"},
	{"appliance/controlplane/store/backup", []string{"api", "appliance/controlplane/store/state"}, "a backup is what the tables say, whoever keeps them"},
	{"appliance/controlplane/objects", []string{"api"}, "decoded objects, and not what is made of them"},
	{"appliance/controlplane/watchcache", []string{"api", "appliance/controlplane/objects"}, "a watch, and not what is made of it"},
	{"appliance/controlplane/placement", []string{"api", "appliance/controlplane/objects"}, "what fits is a function of objects, for the planner and for offers"},
	{"appliance/controlplane/offers", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/plan", "appliance/controlplane/placement", "appliance/controlplane/watchcache", "billing/invoice", "billing/pricebook"}, "what fits comes from the planner, and what it costs from rating"},
	{"appliance/controlplane/plan", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/placement", "gpu/sched", "billing"}, "planners are pure functions of objects"},
	{"appliance/controlplane/planner", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/plan", "appliance/controlplane/watchcache"}, "a thin shell around the planners"},
	{"appliance/controlplane/invoicing", []string{"api", "billing"}, "reads and writes what billing decides; main hands it the store"},
	{"appliance/controlplane/offboarding", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "deletes what ended services had; main hands it the store"},
	{"appliance/controlplane/auditor", []string{"api"}, "verifies the audit trail; main hands it the store of the leader's term"},
	{"appliance/controlplane/webhook", []string{"api"}, "events and a cursor; main hands it the store of the leader's term"},
	{"appliance/controlplane/mail", []string{"api"}, "messages and events; main hands it the store of the leader's term"},
	{"appliance/controlplane/payment", []string{"api"}, "checkouts and a provider; main hands it the store"},
	{"appliance/controlplane/network", []string{"api", "sdn", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "follows what sdn decides; main hands it the store of the leader's term"},
	{"appliance/controlplane/storage", []string{"api", "sds", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "decides about Ceph; main hands it the store of the leader's term and the monitors"},
	{"appliance/controlplane/upgrade", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "what is next is a pure function; main hands it the cluster"},
	{"appliance/controlplane/catalogue", []string{"api"}, "files"},

	{"appliance/cluster/pki", []string{"api", "appliance/atomicfile"}, "certificates know names, not who uses them"},
	{"appliance/cluster/transport", []string{"api", "appliance/cluster/pki"}, "the wire between nodes carries calls and does not know what they mean"},
	{"appliance/cluster/lease", []string{"api"}, "leases and witnesses are pure decisions with a thin shell; main hands it peers"},
	{"appliance/cluster/secrets", []string{"api"}, "keys, and where they are kept"},
	{"appliance/cluster/membership", []string{"api", "appliance/atomicfile", "appliance/broadcast", "appliance/cluster", "appliance/controlplane/store"}, "how a node becomes and stays a member"},

	{"appliance/node/agent", []string{"api", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/watchcache", "appliance/node/budget", "appliance/node/reconcile", "appliance/node/metrics", "gpu/guest/selfreport", "hypervisor", "sds", "billing/meter"}, "the agent acts through small interfaces; main hands it drivers"},
	{"appliance/node/budget", []string{"api"}, "how memory is divided is a function of what runs"},
	{"appliance/node/guests", []string{"api", "hypervisor"}, "it must shut guests down when nothing else of the node works; main hands it the driver"},
	{"appliance/node/nfs", []string{"api"}, "a mount, and not what lies there"},
	{"appliance/node/reconcile", []string{"api"}, "the loop knows keys, not what is behind them"},
	{"appliance/node/metrics", nil, "numbers in rings, and what the kernel says: what they are of, the agent knows"},
	{"appliance/node/limit", nil, "counts, and not of what"},
	{"appliance/node/sealed", []string{"api"}, "an object with secrets, and not what they are of"},
	{"appliance/node/appgateway", []string{"api", "appliance/node/limit", "appliance/node/sealed"}, "HTTP on both sides: who may reach what, and how, main hands it"},
	{"appliance/node/sshgateway", []string{"api", "appliance/node/limit", "appliance/node/sealed"}, "SSH on both sides: who may enter what, and how it is reached, main hands it"},
	{"appliance/node/supervisor", []string{"appliance/atomicfile"}, "it runs programs and does not know what they do"},
	{"appliance/node/hardware", []string{"api"}, "what a machine is, for node, command line and installer: it knows nothing of them"},
	{"appliance/node/fence", []string{"appliance/atomicfile"}, "what must work when everything else has failed depends on nothing but its files"},
	{"appliance/node/hostnet", []string{"appliance/strictyaml"}, "the declaration and its files, for node and installer: pure"},
	{"appliance/node/hostnet/trial", []string{"appliance/atomicfile", "appliance/node/hostnet"}, "it must work while the cluster does not: files and systemd, and nothing of the node"},
	{"appliance/node/network", []string{"api", "sdn", "appliance/controlplane/network", "appliance/controlplane/objects", "appliance/controlplane/watchcache", "appliance/atomicfile", "billing/meter"}, "does what the leader has decided, and records what leaves; main hands it the store and the wire"},
	{"appliance/node/storage", []string{"api", "sds", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/storage", "appliance/controlplane/watchcache"}, "does what the leader has decided, and reports disks; main hands it the store and the daemons"},
	{"appliance/release", []string{"api"}, "it reads a repository of any file system, and does not know what becomes of the packages"},
	{"appliance/node/upgrade", []string{"api", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/upgrade", "appliance/controlplane/watchcache"}, "fetches packages and starts what installs them; main hands it the wire and the program"},

	{"appliance/test/kit", []string{"appliance/test/kit"}, "what tests share: a kit explains, waits and builds, and knows no part of the product"},
	{"appliance/test/kit/accelerator", []string{"hypervisor/capability"}, "for tests, and the answer is the product's"},
	{"appliance/test/testrun", []string{"appliance/test/kit/patience"}, "it runs go and reads what it writes"},
	{"appliance/test/benchreport", nil, "it reads what benchmarks write"},
	{"appliance/test/simulation", []string{"api", "appliance", "hypervisor", "sds", "billing/meter"}, "a cluster of real agents and planners over fakes, in virtual time"},
	{"appliance/test/billingmonth", nil, "tests of money through a whole cluster: no package of ours is built on them"},
	{"appliance/test/e2e", nil, "tests of whole nodes, from outside: no package of ours is built on them"},

	{"hypervisor/vhostuser", []string{"api", "hypervisor/virtio"}, "a protocol package"},
	{"hypervisor/virtio", []string{"api"}, "a protocol package"},
	{"hypervisor", []string{"api", "appliance/atomicfile", "hypervisor"}, "VMs know nothing of the cluster"},
	{"hypervisor/drivertest", []string{"api", "hypervisor", "sds/luks"}, "a suite of drivers, which makes the disks that it attaches"},
	{"gpu/abi", []string{"gpu/abi"}, "the contract imports nobody"},
	{"gpu/abi/gen", []string{"gpu/abi", "gpu/cudaapi"}, "the contract's commands are its own and the table's"},
	{"gpu/cudaapi", []string{"gpu/abi", "gpu/cudaapi"}, "the table of the driver API, and what writes code from it"},
	{"gpu/guest", []string{"gpu/abi"}, "the guest library knows only the contract"},
	{"gpu/guest/container", []string{"appliance/atomicfile", "gpu/abi"}, "it knows the contract, and writes files in guests"},
	{"gpu/guest/nvml/gen", []string{"gpu/cudaapi/written"}, "it writes code from the table of NVML"},
	{"gpu/vhostgpu", []string{"gpu/abi", "gpu/vhostgpu", "hypervisor/vhostuser", "hypervisor/virtio"}, "the device does no GPU work itself"},
	{"gpu/worker", []string{"gpu/abi", "gpu/worker"}, "a worker sees a Driver and a Host, not which"},
	{"gpu/cuda", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/fatbin"}, "a Driver"},
	{"gpu/soft", nil, "tests of the soft GPU as a whole: no package of ours is built on them"},
	{"gpu/soft/docgen", []string{"gpu/soft"}, "it writes what the engine's tables say into a document"},
	{"gpu/soft/device", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/soft/compile", "gpu/soft/exec", "gpu/soft/ir", "gpu/soft/model", "gpu/soft/ops", "gpu/soft/texture"}, "a Driver, which does not know what an instruction is; of ops it has tensor maps"},
	{"gpu/soft/compile", []string{"gpu/abi", "gpu/ptx", "gpu/fatbin", "gpu/soft/ir", "gpu/soft/libdevice", "gpu/soft/ops", "gpu/soft/texture"}, "it makes programs and does not run them"},
	{"gpu/soft/libdevice", []string{"gpu/soft/ops"}, "functions of numbers, as operations"},
	{"gpu/soft/ir", []string{"gpu/abi", "gpu/soft/ops", "gpu/soft/texture"}, "a program as data, which nobody runs here"},
	{"gpu/soft/exec", []string{"gpu/abi", "gpu/soft/amd64", "gpu/soft/ir", "gpu/soft/model", "gpu/soft/native", "gpu/soft/ops", "gpu/soft/simd", "gpu/soft/texture"}, "it runs programs and does not know PTX"},
	{"gpu/soft/model", nil, "a table"},
	{"gpu/soft/amd64", nil, "machine code, and nothing of what it is for"},
	{"gpu/soft/regalloc", nil, "registers and values are numbers"},
	{"gpu/soft/native", []string{"gpu/ptx", "gpu/soft/amd64", "gpu/soft/ir", "gpu/soft/libdevice", "gpu/soft/ops", "gpu/soft/regalloc"}, "it makes code of data, and does not know who runs it"},
	{"gpu/soft/texture", nil, "functions over bytes"},
	{"gpu/soft/ops", []string{"gpu/ptx"}, "arithmetic, by PTX's types"},
	{"gpu/soft/simd", []string{"gpu/soft/ops"}, "loops of ops in other instructions; of ops it has the type of predicates"},
	{"gpu/soft/simd/gen", nil, "it writes assembly"},
	{"gpu/soft/oracle", []string{"gpu/ptx"}, "what the others are compared with shares nothing with them but the parser"},
	{"gpu/null", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/fatbin"}, "a Driver"},
	{"gpu/ptx", []string{"gpu/ptx"}, "a parser"},
	{"gpu/fatbin", []string{"gpu/fatbin"}, "a parser"},
	{"gpu/sched", nil, "pure"},
	{"gpu/gpud", []string{"appliance/atomicfile", "gpu"}, "gpud"},
	{"gpu/conformance", []string{"gpu"}, "the GPU tests in one folder"},
	{"gpu/conformance/nested", []string{"appliance/test/kit/built", "appliance/test/kit/patience", "appliance/test/kit/tree"}, "a card for tests, made of the tree's own programs"},
	{"sds", []string{"api", "appliance/atomicfile", "sds"}, "storage knows nothing of the cluster"},
	{"sds/ceph/cephtest", []string{"api", "sds", "appliance/test/kit/failed", "appliance/test/kit/memory", "appliance/test/kit/port"}, "a cluster for tests, in memory, which explains their failures"},
	{"sdn", []string{"api", "appliance/atomicfile", "sdn"}, "network knows nothing of the cluster"},
	{"billing", []string{"api", "billing"}, "money is a function of records"},
	{"billing/meter", []string{"api"}, "it makes records and does not know what they cost"},
	{"billing/tariff", []string{"api"}, "it calculates, and knows neither books nor invoices"},
	{"billing/pricebook", []string{"api", "billing/tariff"}, "books as tariffs, and not what is charged by them"},
	{"billing/ledger", []string{"api"}, "documents as entries, whoever made them"},
	{"billing/dunning", []string{"api", "billing/ledger"}, "it decides by balances and does not make any"},
	{"ui", []string{"ui"}, "the portal speaks HTTP only"},
	{"installer", []string{"api", "installer", "appliance/node/hardware", "appliance/node/hostnet", "appliance/node/nfs", "appliance/strictyaml"}, "the installer runs before there is a cluster"},
}

func ruleFor(pkg string) (best rule, ok bool) {
	for _, r := range rules {
		if (pkg == r.prefix || strings.HasPrefix(pkg, r.prefix+"/")) && (!ok || len(r.prefix) > len(best.prefix)) {
			best, ok = r, true
		}
	}
	return best, ok
}

func allowed(r rule, imported string) bool {
	for _, a := range append(r.allow, r.prefix) {
		if a == "" || imported == a || strings.HasPrefix(imported, a+"/") {
			return true
		}
	}
	return false
}

func TestImportArrows(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(out); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		pkg := strings.TrimPrefix(p.ImportPath, module)
		r, ok := ruleFor(pkg)
		if !ok {
			t.Errorf("%s is in no rule: say in appliance/cmd/arch_test.go what it may import, and why", pkg)
			continue
		}
		// A suite or a harness, which imports testing, waits and explains itself
		// as all tests do.
		suite := slices.Contains(p.Imports, "testing")
		for _, i := range p.Imports {
			if suite && strings.HasPrefix(i, module+"appliance/test/kit/") {
				continue
			}
			if imp, ours := strings.CutPrefix(i, module); ours && !allowed(r, imp) {
				t.Errorf("%s imports %s, but %s: %s may import of ours only %q", pkg, imp, r.why, r.prefix, r.allow)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if seen < 5 {
		t.Fatalf("go list found %d packages", seen)
	}
}

// impure are packages by which the state machine could come to depend on something
// besides the log.
var impure = []string{"os", "io/fs", "net", "math/rand", "math/rand/v2", "crypto/rand", "path/filepath", "sync", "golang.org/x/sys/unix", "github.com/hashicorp/raft"}

// The state machine makes of a log the same tables on every node.
func TestStateMachineIsPure(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, module+"appliance/controlplane/store/state").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := strings.Fields(string(out))
	if !slices.Contains(imports, module+"api") {
		t.Fatalf("imports of the state machine = %q, want the API's kinds among them", imports)
	}
	for _, i := range imports {
		if slices.Contains(impure, i) {
			t.Errorf("the state machine imports %s: it has to be a function of the log", i)
		}
	}
}

// A rule that catches nothing protects nothing.
func TestArrowsCatchAnOffender(t *testing.T) {
	r, _ := ruleFor("api/server")
	if allowed(r, "appliance/controlplane/store") {
		t.Error("api/server may import appliance/controlplane/store")
	}
	if r, _ := ruleFor("gpu/vhostgpu/x"); !allowed(r, "gpu/abi") || allowed(r, "gpu/gpud") {
		t.Errorf("gpu/vhostgpu's rule is %v", r)
	}
	if r, _ := ruleFor("gpu/soft/exec"); !allowed(r, "gpu/soft/ops") || allowed(r, "gpu/soft/compile") || allowed(r, "gpu/ptx") {
		t.Errorf("gpu/soft/exec's rule is %v", r)
	}
}
