package guest_test

import (
	"bufio"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// startHolder starts a program that holds 16 MiB of the vGPU until its input ends, and returns
// its process ID. end ends the program and fails the test if it fails.
func (g *gpud) startHolder(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := g.command(t, object("nvml-names"), "hold", made("lib", "libcuda.so.1"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "holding\n" {
		t.Fatalf("nvml-names printed %q (%v), want %q", line, err, "holding\n")
	}
	return cmd.Process.Pid, func() {
		t.Helper()
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Errorf("end the program that holds memory: %v", err)
		}
	}
}

func TestNvidiaSMI(t *testing.T) {
	g := startGPUD(t)
	smi := made("bin", "nvidia-smi")
	if got := g.run(t, smi, "-L"); !strings.HasPrefix(got, "GPU 0: ") || !strings.Contains(got, "(UUID: GPU-") {
		t.Errorf("-L printed %q, want %q at its start and a UUID", got, "GPU 0: ")
	}
	pid, end := g.startHolder(t)
	for i, line := range strings.Split(strings.TrimSpace(g.run(t, smi)), "\n") {
		if i > 0 && line != "" && len(line) != 91 {
			t.Errorf("line %d of the table has %d columns, want 91: %s", i, len(line), line)
		}
	}
	process := strconv.Itoa(pid)
	for _, c := range []struct{ args, want string }{
		{"--query-gpu=memory.total,index --format=csv", "memory.total [MiB], index\n256 MiB, 0\n"},
		{"--query-gpu=clocks.sm,gpu_name,temperature.gpu --format=csv", "clocks.current.sm [MHz], name, temperature.gpu\n1000 MHz, Basalt Soft GPU, [N/A]\n"},
		{"--query-gpu=memory.total,memory.used --format=csv,nounits", "memory.total [MiB], memory.used [MiB]\n256, 16\n"},
		{"--query-gpu=index,utilization.memory --format=csv,noheader", "0, [N/A]\n"}, // a soft GPU does not measure it
		{"-q -d UTILIZATION", "        Memory                            : N/A\n"},
		{"--query-compute-apps=pid,used_memory --format=csv", "pid, used_gpu_memory [MiB]\n" + process + ", 16 MiB\n"},
		{"--query-compute-apps=pid,name --format=csv,noheader -i 00000000:00:00.0", process + ", " + filepath.Base(object("nvml-names"))},
		{"--query-accounted-apps=pid,max_memory_usage,time --format=csv,noheader", process + ", 16 MiB, 0 ms\n"},
		{"-q -d MEMORY", "    FB Memory Usage\n        Total                             : 256 MiB\n"},
		{"-q -d PIDS,compute", "        Process ID                        : " + process + "\n            Type                          : C\n"},
		{"dmon -c 2 -d 1 -s um", "    0 "},
		{"pmon -c 1 -s um", process + "     C "},
		{"topo -m", "GPU0\t X "},
		{"--version", "DRIVER version      : 550.163.01\nCUDA Version        : 12.4\n"},
		{"--help", "--query-compute-apps"},
	} {
		if got := g.run(t, smi, strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("%s printed %q, want %q in it", c.args, got, c.want)
		}
	}
	end()
	patience.Until(t, apiPatience, "the process is accounted as ended", func() bool {
		return g.run(t, smi, "--query-accounted-apps=time", "--format=csv,noheader") != "0 ms\n"
	})
	if got := g.run(t, smi, "--query-compute-apps=pid", "--format=csv,noheader"); got != "" {
		t.Errorf("compute apps after the end of all processes = %q, want none", got)
	}
}

// nvidia-smi names each invalid option, and exits with the documented status.
func TestNvidiaSMIRefuses(t *testing.T) {
	g := startGPUD(t)
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"--query-gpu=colour --format=csv", `"colour" of --query-gpu is not known`, 2},
		{"--query-compute-apps=pid,colour --format=csv", `"colour" of --query-compute-apps is not known`, 2},
		{"--query-gpu= --format=csv", "--query-gpu names no field", 2},
		{"--query-gpu=name", "needs --format=csv", 2},
		{"--query-gpu=name --format=json", "--format: want csv", 2},
		{"--format=csv", "--format: can only be used with", 2},
		{"-q -d COLOUR", `section "COLOUR" is not known`, 2},
		{"-x", "-x: can only be used with -q", 2},
		{"-q -L", "only one query", 2},
		{"-i", "-i: an argument is missing", 2},
		{"-l 0", "--loop: want seconds", 2},
		{"-lms x", "--loop-ms: want milliseconds", 2},
		{"--colour", "--colour: is not an option", 2},
		{"-f /nonexistent/file", "/nonexistent/file: cannot be written", 2},
		{"dmon -s x", "dmon: -s: want", 2},
		{"pmon -d 11", "pmon: -d: want", 2},
		{"dmon -c", "dmon: -c: want", 2},
		{"topo -x", "topo: -x: want -m", 2},
		{"-L -i 1", `no GPU "1"`, 6},
		{"-L -i GPU-00000000-0000-0000-0000-000000000000", "no GPU", 6},
		{"-L -i colour", `no GPU "colour"`, 6},
		{"-pl 100", "-pl: Insufficient Permissions", 4},
		{"-pm 1", "-pm: Insufficient Permissions", 4},
		{"--gpu-reset", "--gpu-reset: Insufficient Permissions", 4},
		{"--compute-mode=0", "--compute-mode=0: Insufficient Permissions", 4},
	} {
		out, err := g.command(t, made("bin", "nvidia-smi"), strings.Fields(c.args)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != c.status || !strings.Contains(string(out), c.want) {
			t.Errorf("nvidia-smi %s: %v, %q; want exit status %d and %q", c.args, err, out, c.status, c.want)
		}
	}
}

// Every field that the help lists can be queried, and has one value.
func TestNvidiaSMIFields(t *testing.T) {
	g := startGPUD(t)
	for _, subject := range []string{"gpu", "compute-apps", "accounted-apps"} {
		var fields []string
		for s := bufio.NewScanner(strings.NewReader(g.run(t, made("bin", "nvidia-smi"), "--help-query-"+subject))); s.Scan(); {
			for _, name := range strings.Split(s.Text(), " or ") {
				if strings.HasPrefix(name, `"`) {
					fields = append(fields, strings.Trim(name, `"`))
				}
			}
		}
		r := csv.NewReader(strings.NewReader(g.run(t, made("bin", "nvidia-smi"), "--query-"+subject+"="+strings.Join(fields, ","), "--format=csv")))
		rows, err := r.ReadAll()
		if err != nil || len(fields) < 8 || len(rows) == 0 || len(rows[0]) != len(fields) {
			t.Fatalf("--query-%s: %d fields, rows %v, %v; want at least 8 fields, and a header row with each", subject, len(fields), rows, err)
		}
		if want := 1; subject == "gpu" && len(rows)-1 != want {
			t.Errorf("--query-%s printed %d rows, want %d", subject, len(rows)-1, want)
		}
	}
}

// The XML report has the elements that tools read.
func TestNvidiaSMIXML(t *testing.T) {
	g := startGPUD(t)
	pid, end := g.startHolder(t)
	defer end()
	var log struct {
		XMLName xml.Name `xml:"nvidia_smi_log"`
		Driver  string   `xml:"driver_version"`
		CUDA    string   `xml:"cuda_version"`
		GPUs    []struct {
			ID      string `xml:"id,attr"`
			Name    string `xml:"product_name"`
			UUID    string `xml:"uuid"`
			BusID   string `xml:"pci>pci_bus_id"`
			Total   string `xml:"fb_memory_usage>total"`
			Used    string `xml:"fb_memory_usage>used"`
			GPUUtil string `xml:"utilization>gpu_util"`
			Width   string `xml:"pci>pci_gpu_link_info>link_widths>max_link_width"`
			ECC     string `xml:"ecc_errors>volatile>dram_uncorrectable"`
			SM      string `xml:"clocks>sm_clock"`
			Process []struct {
				PID  int    `xml:"pid"`
				Type string `xml:"type"`
				Name string `xml:"process_name"`
				Used string `xml:"used_memory"`
			} `xml:"processes>process_info"`
			Accounted []struct {
				PID int    `xml:"pid"`
				Max string `xml:"max_memory_usage"`
			} `xml:"accounted_processes>accounted_process_info"`
		} `xml:"gpu"`
	}
	text := g.run(t, made("bin", "nvidia-smi"), "-q", "-x")
	if err := xml.Unmarshal([]byte(text), &log); err != nil || len(log.GPUs) != 1 || log.Driver != "550.163.01" || log.CUDA != "12.4" {
		t.Fatalf("decode the XML report: %v, %+v; want one GPU, driver 550.163.01 and CUDA 12.4", err, log)
	}
	gpu := log.GPUs[0]
	if gpu.ID != gpu.BusID || gpu.Name != "Basalt Soft GPU" || !strings.HasPrefix(gpu.UUID, "GPU-") || gpu.Total != "256 MiB" || gpu.Used != "16 MiB" ||
		!strings.HasSuffix(gpu.GPUUtil, " %") || gpu.Width != "N/A" || gpu.ECC != "N/A" || gpu.SM != "1000 MHz" {
		t.Errorf("gpu = %+v, want a Basalt Soft GPU with 16 MiB of 256 MiB used, 1000 MHz, and its PCI address as ID", gpu)
	}
	if len(gpu.Process) != 1 || gpu.Process[0].PID != pid || gpu.Process[0].Type != "C" || gpu.Process[0].Used != "16 MiB" {
		t.Errorf("processes = %+v, want pid %d of type C with 16 MiB", gpu.Process, pid)
	}
	if len(gpu.Accounted) != 1 || gpu.Accounted[0].PID != pid || gpu.Accounted[0].Max != "16 MiB" {
		t.Errorf("accounted processes = %+v, want pid %d with 16 MiB", gpu.Accounted, pid)
	}
	if got := g.run(t, made("bin", "nvidia-smi"), "-q", "-x", "-d", "MEMORY"); !strings.Contains(got, "fb_memory_usage") || strings.Contains(got, "product_name") {
		t.Errorf("-q -x -d MEMORY printed %s, want fb_memory_usage and no product_name", got)
	}
}

// The readings of a GPU's sensors reach nvidia-smi through the host and the library.
func TestNvidiaSMIReadings(t *testing.T) {
	g := startGPUDWith(t, "--soft-gpu", "vram=256MiB,model=a100,fault=throttled")
	const fields = "name,temperature.gpu,clocks.sm,clocks.mem,clocks.max.sm,clocks_throttle_reasons.active,clocks_throttle_reasons.sw_thermal_slowdown," +
		"ecc.mode.current,ecc.errors.uncorrected.volatile.total,pstate,fan.speed,power.draw,pci.device_id," +
		"pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,pcie.link.gen.hostmax"
	want := "NVIDIA A100-SXM4-40GB, 95, 470 MHz, 1215 MHz, 1410 MHz, 0x0000000000000020, Active, Enabled, 0, P0, [N/A], [N/A], 0x20B010DE, 4, 4, 16, 16, [N/A]\n"
	if got := g.run(t, made("bin", "nvidia-smi"), "--query-gpu="+fields, "--format=csv,noheader"); got != want {
		t.Errorf("--query-gpu=%s printed %q, want %q", fields, got, want)
	}
	if got := g.run(t, made("bin", "nvidia-smi"), "-q", "-x"); !strings.Contains(got, "<max_link_gen>4</max_link_gen>") || !strings.Contains(got, "<current_link_width>16x</current_link_width>") {
		t.Errorf("-q -x printed %s, want a link of generation 4 with 16x", got)
	}
}

// If the GPU is lost, every form of nvidia-smi exits with status 15.
func TestNvidiaSMILost(t *testing.T) {
	g := startGPUDWith(t, "--soft-gpu", "vram=256MiB,fault=lost")
	for _, args := range []string{"", "-q", "-q -x", "--query-gpu=name --format=csv", "--query-compute-apps=pid --format=csv", "--query-accounted-apps=pid --format=csv", "dmon -c 1", "pmon -c 1", "-l 1"} {
		out, err := g.command(t, made("bin", "nvidia-smi"), strings.Fields(args)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 15 || !strings.Contains(string(out), "GPU is lost") {
			t.Errorf("nvidia-smi %s: %v, %q; want exit status 15", args, err, out)
		}
	}
}

// A loop prints one header, and ends when the reader closes its output. With -f the output
// is written to a file.
func TestNvidiaSMILoop(t *testing.T) {
	g := startGPUD(t)
	smi := made("bin", "nvidia-smi")
	cmd := g.command(t, smi, "--query-gpu=index", "--format=csv", "-lms", "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for i, want := range []string{"index\n", "0\n", "0\n", "0\n"} {
		if line, err := r.ReadString('\n'); line != want {
			t.Errorf("line %d is %q, %v; want %q", i, line, err, want)
		}
	}
	if err := out.Close(); err != nil {
		t.Errorf("close the output of nvidia-smi: %v", err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("nvidia-smi -lms exited with status 0 after its output was closed, want a failure")
	}
	path := filepath.Join(t.TempDir(), "out")
	if got := g.run(t, smi, "-L", "-f", path); got != "" {
		t.Errorf("nvidia-smi -L -f printed %q, want nothing", got)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "GPU 0: ") {
		t.Errorf("the file of -f has %q (%v), want %q at its start", b, err, "GPU 0: ")
	}
}
