// Package cmd_test checks the imports of the tree against docs/architecture.md.
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

// rule states which of our packages the packages under prefix may import (a path includes what
// is below it). The longest matching prefix applies.
type rule struct {
	prefix string
	allow  []string
	why    string
}

var rules = []rule{
	{"api/server", []string{"api"}, "the server declares the store it needs; main wires a real one"},
	{"api/client", []string{"api"}, "the client depends on the API only, not on its implementation"},
	{"api/storetest", []string{"api"}, "one conformance suite for every store"},
	{"api/memstore", []string{"api"}, "a fake, with the dependencies of the real store"},
	{"api/vat", nil, "numbers and countries, independently of what has them"},
	{"api", []string{"api/vat"}, "the kinds are a leaf that every package imports"},
	{"appliance/apparmor", nil, "a leaf: whoever starts a program of any area names its profile"},
	{"appliance/atomicfile", nil, "a leaf that the daemons of every area may import: it handles files only"},
	{"appliance/broadcast", nil, "it only wraps a channel"},
	{"appliance/strictyaml", nil, "a leaf: it parses files independently of their content"},
	{"appliance/debugserver", nil, "it serves profiles of any process"},
	{"appliance/cli", []string{"api", "appliance/atomicfile", "appliance/controlplane/catalogue", "appliance/node/hardware", "appliance/release", "hypervisor/iso9660"}, "the CLI is a client of the API, checks the machine that it runs on, and reads media"},
	{"appliance/cmd", []string{""}, "mains are the only wiring"},

	{"appliance/controlplane/store", []string{"api", "appliance/atomicfile", "appliance/broadcast"}, "the store keeps objects independently of their meaning"},
	{"appliance/controlplane/store/state", []string{"api"}, "the state machine is a function of the log: it must not depend on files, Raft or other nodes"},
	{"appliance/controlplane/store/backup", []string{"api", "appliance/controlplane/store/state"}, "a backup is the content of the tables, independent of the store"},
	{"appliance/controlplane/objects", []string{"api"}, "it decodes objects and does not interpret them"},
	{"appliance/controlplane/watchcache", []string{"api", "appliance/controlplane/objects"}, "it watches objects and does not interpret them"},
	{"appliance/controlplane/placement", []string{"api", "appliance/controlplane/objects"}, "what fits is a function of objects, for the planner and for offers"},
	{"appliance/controlplane/offers", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/plan", "appliance/controlplane/placement", "appliance/controlplane/watchcache", "billing/invoice", "billing/pricebook"}, "what fits comes from the planner, and what it costs from rating"},
	{"appliance/controlplane/forecast", []string{"api"}, "it reads usage and objects; main passes the store"},
	{"appliance/controlplane/plan", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/placement", "gpu/sched", "billing"}, "planners are pure functions of objects"},
	{"appliance/controlplane/planner", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/plan", "appliance/controlplane/watchcache"}, "a thin shell around the planners"},
	{"appliance/controlplane/invoicing", []string{"api", "billing"}, "it applies the decisions of billing; main passes the store"},
	{"appliance/controlplane/offboarding", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "it deletes what ended services had; main passes the store"},
	{"appliance/controlplane/auditor", []string{"api"}, "it verifies the audit log; main passes the store of the leader's term"},
	{"appliance/controlplane/webhook", []string{"api"}, "events and a cursor; main passes the store of the leader's term"},
	{"appliance/controlplane/mail", []string{"api"}, "messages and events; main passes the store of the leader's term"},
	{"appliance/controlplane/vatcheck", []string{"api", "billing/tax"}, "tax settings and organizations decide which numbers are verified; main passes the store of the leader's term"},
	{"appliance/controlplane/certificates", []string{"api"}, "settings and host names decide which certificates are requested; main passes the store of the leader's term and the client of the authority"},
	{"appliance/controlplane/payment", []string{"api"}, "checkouts and a provider; main passes the store"},
	{"appliance/controlplane/network", []string{"api", "sdn", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "it applies the decisions of sdn; main passes the store of the leader's term"},
	{"appliance/controlplane/storage", []string{"api", "sds", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "it manages Ceph; main passes the store of the leader's term and the monitors"},
	{"appliance/controlplane/upgrade", []string{"api", "appliance/controlplane/objects", "appliance/controlplane/watchcache"}, "the next step is a pure function; main passes the cluster"},
	{"appliance/controlplane/catalogue", []string{"api"}, "files"},

	{"appliance/cluster/pki", []string{"api", "appliance/atomicfile"}, "certificates depend on names, not on their users"},
	{"appliance/cluster/transport", []string{"api", "appliance/cluster/pki"}, "the transport between nodes carries calls independently of their meaning"},
	{"appliance/cluster/lease", []string{"api"}, "leases and witnesses are pure decisions with a thin shell; main passes the peers"},
	{"appliance/cluster/secrets", []string{"api"}, "it stores keys only"},
	{"appliance/cluster/membership", []string{"api", "appliance/atomicfile", "appliance/broadcast", "appliance/cluster", "appliance/controlplane/store"}, "how a node becomes and stays a member"},

	{"appliance/node/agent", []string{"api", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/watchcache", "appliance/node/budget", "appliance/node/machinestate", "appliance/node/reconcile", "appliance/node/metrics", "gpu/guest/selfreport", "hypervisor", "sds", "billing/meter"}, "the agent acts through small interfaces; main passes the drivers"},
	{"appliance/node/budget", []string{"api"}, "the division of memory is a function of what runs"},
	{"appliance/node/machinestate", nil, "a format that hostile input is decoded from, and nothing else"},
	{"appliance/node/guests", []string{"api", "hypervisor"}, "it must shut guests down when nothing else of the node works; main passes the driver"},
	{"appliance/node/nfs", []string{"api"}, "it mounts file systems independently of their content"},
	{"appliance/node/reconcile", []string{"api"}, "the loop depends on keys, not on the objects"},
	{"appliance/node/metrics", nil, "ring buffers of numbers, and counters of the kernel; the agent gives them a meaning"},
	{"appliance/node/limit", nil, "it counts independently of what is counted"},
	{"appliance/node/sealed", []string{"api"}, "it seals secrets independently of their meaning"},
	{"appliance/node/appgateway", []string{"api", "appliance/node/limit", "appliance/node/sealed"}, "HTTP on both sides: main passes authorization and dialing"},
	{"appliance/node/sshgateway", []string{"api", "appliance/node/limit", "appliance/node/sealed"}, "SSH on both sides: main passes authorization and dialing"},
	{"appliance/node/supervisor", []string{"appliance/atomicfile"}, "it runs programs independently of what they do"},
	{"appliance/node/bootloader", []string{"appliance/atomicfile", "appliance/node/mirror"}, "it must repair disks while nothing else works: it depends on files and programs only"},
	{"appliance/node/hardware", []string{"api", "appliance/apparmor", "appliance/node/bootloader"}, "it describes a machine for node, CLI and installer, and must not depend on them"},
	{"appliance/node/gpudriver", []string{"appliance/atomicfile", "appliance/node/hardware"}, "it installs packages on a node that may not be a member yet: it depends on files and programs only"},
	{"appliance/node/mirror", nil, "it must repair disks while nothing else works: it depends on the kernel's files and on programs only"},
	{"appliance/node/fence", []string{"appliance/atomicfile"}, "it must work when everything else has failed, so it depends only on its files"},
	{"appliance/node/hostnet", []string{"appliance/strictyaml"}, "the declaration and its files, for node and installer: pure"},
	{"appliance/node/hostnet/trial", []string{"appliance/atomicfile", "appliance/node/hostnet"}, "it must work while the cluster does not: it depends on files and systemd only"},
	{"appliance/node/firewall", []string{"appliance/atomicfile", "appliance/node/hostnet"}, "rules are a function of the declaration; main passes ports and addresses"},
	{"appliance/node/listen", []string{"appliance/node/hostnet"}, "it listens on addresses independently of the service"},
	{"appliance/node/network", []string{"api", "sdn", "appliance/controlplane/network", "appliance/controlplane/objects", "appliance/controlplane/watchcache", "appliance/atomicfile", "billing/meter"}, "it applies the leader's decisions and records egress; main passes the store and the transport"},
	{"appliance/node/storage", []string{"api", "sds", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/storage", "appliance/controlplane/watchcache"}, "it applies the leader's decisions and reports disks; main passes the store and the daemons"},
	{"appliance/release", []string{"api"}, "it reads a repository of any file system, and is independent of the use of the packages"},
	{"appliance/node/upgrade", []string{"api", "appliance/atomicfile", "appliance/controlplane/objects", "appliance/controlplane/upgrade", "appliance/controlplane/watchcache"}, "it fetches packages and starts their installation; main passes the transport and the program"},

	{"appliance/test/kit", []string{"appliance/test/kit"}, "helpers of tests that are independent of the product"},
	{"appliance/test/kit/accelerator", []string{"hypervisor/capability"}, "for tests, with the product's own probe"},
	{"appliance/test/testrun", []string{"appliance/test/kit/patience"}, "it runs go and parses its output"},
	{"appliance/test/benchreport", nil, "it parses the output of benchmarks"},
	{"appliance/test/simulation", []string{"api", "appliance", "hypervisor", "sds", "billing/meter"}, "a cluster of real agents and planners over fakes, in virtual time"},
	{"appliance/test/billingmonth", nil, "tests of money through a whole cluster: no other package may import them"},
	{"appliance/test/e2e", nil, "tests of whole nodes, from outside: no other package may import them"},

	{"hypervisor/vhostuser", []string{"api", "hypervisor/virtio"}, "a protocol package"},
	{"hypervisor/virtio", []string{"api"}, "a protocol package"},
	{"hypervisor", []string{"api", "appliance/atomicfile", "hypervisor"}, "hypervisor drivers must not depend on the cluster"},
	{"hypervisor/drivertest", []string{"api", "hypervisor", "sds/luks"}, "a suite of drivers, which creates the disks that it attaches"},
	{"gpu/abi", []string{"gpu/abi"}, "the contract imports no other package"},
	{"gpu/abi/gen", []string{"gpu/abi", "gpu/cudaapi"}, "the contract's commands are its own and the table's"},
	{"gpu/cudaapi", []string{"gpu/abi", "gpu/cudaapi"}, "the table of the driver API, and its code generators"},
	{"gpu/guest", []string{"gpu/abi"}, "the guest library depends only on the contract"},
	{"gpu/guest/container", []string{"appliance/atomicfile", "gpu/abi"}, "it depends only on the contract, and writes files in guests"},
	{"gpu/guest/nvml/gen", []string{"gpu/cudaapi/written"}, "it generates code from the table of NVML"},
	{"gpu/vhostgpu", []string{"gpu/abi", "gpu/vhostgpu", "hypervisor/vhostuser", "hypervisor/virtio"}, "the device does no GPU work itself"},
	{"gpu/worker", []string{"gpu/abi", "gpu/worker"}, "a worker depends on the interfaces Driver and Host, not on implementations"},
	{"gpu/cuda", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/fatbin"}, "a Driver"},
	{"gpu/soft", nil, "tests of the soft GPU as a whole: no other package may import them"},
	{"gpu/soft/docgen", []string{"gpu/soft"}, "it generates documentation from the engine's tables"},
	{"gpu/soft/device", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/soft/compile", "gpu/soft/exec", "gpu/soft/ir", "gpu/soft/model", "gpu/soft/ops", "gpu/soft/texture"}, "a Driver, which is independent of instructions; of ops it uses tensor maps"},
	{"gpu/soft/compile", []string{"gpu/abi", "gpu/ptx", "gpu/fatbin", "gpu/soft/ir", "gpu/soft/libdevice", "gpu/soft/ops", "gpu/soft/texture"}, "it creates programs and does not run them"},
	{"gpu/soft/libdevice", []string{"gpu/soft/ops"}, "functions of numbers, as operations"},
	{"gpu/soft/ir", []string{"gpu/abi", "gpu/soft/ops", "gpu/soft/texture"}, "a program as data, which is not run here"},
	{"gpu/soft/exec", []string{"gpu/abi", "gpu/soft/amd64", "gpu/soft/ir", "gpu/soft/model", "gpu/soft/native", "gpu/soft/ops", "gpu/soft/simd", "gpu/soft/texture"}, "it runs programs independently of PTX"},
	{"gpu/soft/model", nil, "a table"},
	{"gpu/soft/amd64", nil, "machine code, independent of its use"},
	{"gpu/soft/regalloc", nil, "registers and values are numbers"},
	{"gpu/soft/native", []string{"gpu/ptx", "gpu/soft/amd64", "gpu/soft/ir", "gpu/soft/libdevice", "gpu/soft/ops", "gpu/soft/regalloc"}, "it generates code from data, independently of who runs it"},
	{"gpu/soft/texture", nil, "functions over bytes"},
	{"gpu/soft/ops", []string{"gpu/ptx"}, "arithmetic, by PTX's types"},
	{"gpu/soft/simd", []string{"gpu/soft/ops"}, "loops of ops in other instructions; of ops it uses the type of predicates"},
	{"gpu/soft/simd/gen", []string{"gpu/soft/ops"}, "it generates assembly; of ops it uses the coefficients of approximations"},
	{"gpu/soft/oracle", []string{"gpu/ptx"}, "the oracle shares only the parser with the implementations that are compared with it"},
	{"gpu/null", []string{"gpu/abi", "gpu/worker", "gpu/ptx", "gpu/fatbin"}, "a Driver"},
	{"gpu/ptx", []string{"gpu/ptx"}, "a parser"},
	{"gpu/fatbin", []string{"gpu/fatbin"}, "a parser"},
	{"gpu/sched", nil, "pure"},
	{"gpu/gpud", []string{"appliance/apparmor", "appliance/atomicfile", "gpu"}, "gpud"},
	{"gpu/conformance", []string{"gpu"}, "the GPU tests in one folder"},
	{"gpu/conformance/nested", []string{"appliance/test/kit/built", "appliance/test/kit/patience", "appliance/test/kit/tree"}, "a GPU for tests, provided by the tree's own programs"},
	{"sds", []string{"api", "appliance/apparmor", "appliance/atomicfile", "sds"}, "storage drivers must not depend on the cluster"},
	{"sds/ceph/cephtest", []string{"api", "sds", "appliance/test/kit/failed", "appliance/test/kit/memory", "appliance/test/kit/port"}, "a cluster for tests, in memory, which keeps evidence of failures"},
	{"sdn", []string{"api", "appliance/atomicfile", "sdn"}, "network drivers must not depend on the cluster"},
	{"billing", []string{"api", "billing"}, "money is a function of records"},
	{"billing/meter", []string{"api"}, "it creates records independently of their cost"},
	{"billing/tariff", []string{"api"}, "it calculates independently of price books and invoices"},
	{"billing/pricebook", []string{"api", "billing/tariff"}, "price books as tariffs, independently of charges"},
	{"billing/ledger", []string{"api"}, "documents as entries, independently of their origin"},
	{"billing/dunning", []string{"api", "billing/ledger"}, "it decides by balances and does not change them"},
	{"ui", []string{"ui"}, "the portal uses HTTP only"},
	{"installer", []string{"api", "installer", "appliance/node/bootloader", "appliance/node/gpudriver", "appliance/node/hardware", "appliance/node/hostnet", "appliance/node/nfs", "appliance/strictyaml"}, "the installer runs before there is a cluster"},
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
			t.Errorf("package %s has no rule: add one to appliance/cmd/arch_test.go with what it may import, and why", pkg)
			continue
		}
		// A test suite or harness, which imports testing, may use the kits of tests.
		suite := slices.Contains(p.Imports, "testing")
		for _, i := range p.Imports {
			if suite && strings.HasPrefix(i, module+"appliance/test/kit/") {
				continue
			}
			if imp, ours := strings.CutPrefix(i, module); ours && !allowed(r, imp) {
				t.Errorf("%s imports %s, but %s: of our packages, %s may import only %q", pkg, imp, r.why, r.prefix, r.allow)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if seen < 5 {
		t.Fatalf("go list found %d packages, want at least 5", seen)
	}
}

// impure lists packages by which the state machine could depend on something other than the
// log.
var impure = []string{"os", "io/fs", "net", "math/rand", "math/rand/v2", "crypto/rand", "path/filepath", "sync", "golang.org/x/sys/unix", "github.com/hashicorp/raft"}

// TestStateMachineIsPure: the state machine must produce the same tables from a log on every
// node.
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
			t.Errorf("the state machine imports %s: want it to be a function of the log", i)
		}
	}
}

// TestArrowsCatchAnOffender checks that rules reject imports.
func TestArrowsCatchAnOffender(t *testing.T) {
	r, _ := ruleFor("api/server")
	if allowed(r, "appliance/controlplane/store") {
		t.Error("allowed(api/server, appliance/controlplane/store) = true, want false")
	}
	if r, _ := ruleFor("gpu/vhostgpu/x"); !allowed(r, "gpu/abi") || allowed(r, "gpu/gpud") {
		t.Errorf("rule of gpu/vhostgpu/x = %v, want gpu/abi allowed and gpu/gpud not", r)
	}
	if r, _ := ruleFor("gpu/soft/exec"); !allowed(r, "gpu/soft/ops") || allowed(r, "gpu/soft/compile") || allowed(r, "gpu/ptx") {
		t.Errorf("rule of gpu/soft/exec = %v, want gpu/soft/ops allowed, and gpu/soft/compile and gpu/ptx not", r)
	}
}
