package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fioJob is a benchmark of a disk. Its name is part of the samples' names.
type fioJob struct {
	name, rw, bs string
	depth        int // number of concurrent requests
}

var fioJobs = []fioJob{
	{"4k-read", "randread", "4k", 32},
	{"4k-write", "randwrite", "4k", 32},
	{"1m-read", "read", "1m", 4},
	{"1m-write", "write", "1m", 4},
}

const (
	fioBytes   = 256 * mib // size of the measured disk
	fioSeconds = 3         // duration of a job
	fillJob    = "fill"    // writes all blocks before the measurement, because unwritten blocks have another performance
)

// value returns the value and unit of a sample for that many requests per second.
func (j fioJob) value(iops float64) (float64, string) {
	if j.bs == "4k" {
		return iops, "IOPS"
	}
	return iops * mib / 1e6, "MB/s"
}

// fioFile returns the job file for fio: fill the disk, then run one job after the other. The
// node's page cache stays warm, because a guest cannot empty it either.
func fioFile(disk string, direct bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[global]\nfilename=%s\nsize=%d\nioengine=libaio\nrandrepeat=0\ninvalidate=0\nstonewall\n", disk, fioBytes)
	if direct {
		b.WriteString("direct=1\n")
	}
	fmt.Fprintf(&b, "[%s]\nrw=write\nbs=1m\niodepth=4\nend_fsync=1\n", fillJob)
	for _, j := range fioJobs {
		fmt.Fprintf(&b, "[%s]\nrw=%s\nbs=%s\niodepth=%d\ntime_based\nruntime=%d\n", j.name, j.rw, j.bs, j.depth, fioSeconds)
	}
	return b.String()
}

// parseFio parses fio's output for the jobs of fioFile, each of which must have completed
// requests.
func parseFio(out []byte) (map[string]float64, error) {
	iops, err := parseFioJobs(out)
	if err != nil {
		return nil, err
	}
	for _, j := range fioJobs {
		if iops[j.name] == 0 {
			return nil, fmt.Errorf("fio did nothing in job %s", j.name)
		}
	}
	return iops, nil
}

// parseFioJobs parses fio's JSON output into requests per second by job name. It ignores text
// before the JSON.
func parseFioJobs(out []byte) (map[string]float64, error) {
	var r struct {
		Jobs []struct {
			Jobname     string
			Error       int
			Read, Write struct{ IOPS float64 }
		}
	}
	at := bytes.IndexByte(out, '{')
	if at < 0 {
		return nil, fmt.Errorf("fio printed no JSON: %q", out)
	}
	if err := json.Unmarshal(out[at:], &r); err != nil {
		return nil, fmt.Errorf("fio printed %q: %w", out, err)
	}
	iops := map[string]float64{}
	for _, j := range r.Jobs {
		if j.Error != 0 {
			return nil, fmt.Errorf("fio: job %s met error %d", j.Jobname, j.Error)
		}
		iops[j.Jobname] = j.Read.IOPS + j.Write.IOPS // a job either reads or writes
	}
	return iops, nil
}

var rbdRate = regexp.MustCompile(`ops/sec: ([0-9.e+]+)`)

// parseRBD parses the final line of rbd bench: requests per second.
func parseRBD(out string) (float64, error) {
	all := rbdRate.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("rbd bench printed %q", out)
	}
	return strconv.ParseFloat(all[len(all)-1][1], 64)
}

// fioDisk creates a qcow2 image of a file system with this machine's fio, the libraries that it
// links to, and the loader, because guests have no fio and cannot reach an archive.
func fioDisk(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	root, raw, path := filepath.Join(dir, "fio"), filepath.Join(dir, "fio.ext4"), filepath.Join(dir, "fio.qcow2")
	if err := os.MkdirAll(filepath.Join(root, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("fio")
	if err != nil {
		t.Fatal(err)
	}
	linked, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	files := map[string]string{program: "fio"}
	for _, line := range lines(string(linked)) {
		for _, word := range strings.Fields(line) {
			if !filepath.IsAbs(word) {
				continue
			}
			files[word] = filepath.Join("lib", filepath.Base(word))
			if strings.HasPrefix(filepath.Base(word), "ld-linux") {
				files[word] = "loader"
			}
		}
	}
	for from, to := range files {
		raw, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, to), raw, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{
		{"mke2fs", "-q", "-t", "ext4", "-d", root, raw, "160M"},
		{"qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", raw, path},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	return path
}

func TestParseFio(t *testing.T) {
	job := func(name string, failed int, iops float64) string {
		return fmt.Sprintf(`{"jobname": %q, "error": %d, "read": {"iops": %g}, "write": {"iops": 0}}`, name, failed, iops)
	}
	var good []string
	for i, j := range fioJobs {
		good = append(good, job(j.name, 0, float64(i+1)))
	}
	all := func(jobs []string) []byte {
		return []byte("fio: a warning\n" + `{"jobs": [` + strings.Join(jobs, ",") + "]}")
	}
	iops, err := parseFio(all(good))
	if err != nil || iops["4k-read"] != 1 || iops["1m-write"] != 4 {
		t.Errorf("parseFio = %v, error %v, want 4k-read 1 and 1m-write 4", iops, err)
	}
	for name, out := range map[string][]byte{
		"nothing":       nil,
		"half":          all(good)[:40],
		"a job missing": all(good[1:]),
		"a job failed":  all(append([]string{job("4k-read", 5, 1)}, good[1:]...)),
		"a job idle":    all(append([]string{job("4k-read", 0, 0)}, good[1:]...)),
	} {
		if iops, err := parseFio(out); err == nil {
			t.Errorf("parseFio of output with %s = %v, want an error", name, iops)
		}
	}
}

func TestParseRBD(t *testing.T) {
	got, err := parseRBD("bench  type write io_size 4096\n  SEC       OPS   OPS/SEC   BYTES/SEC\nelapsed: 2   ops: 4096   ops/sec: 1.5e+03   bytes/sec: 5.9 MiB/s\n")
	if err != nil || got != 1500 {
		t.Errorf("parseRBD = %v, error %v, want 1500", got, err)
	}
	if got, err := parseRBD("rbd: error opening image\n"); err == nil {
		t.Errorf("parseRBD of an error message = %v, want an error", got)
	}
}
