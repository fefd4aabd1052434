package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// diskWays lists the ways in which QEMU can open the file of a local volume, as attributes of
// libvirt's driver element. The first is QEMU's default.
var diskWays = []struct{ name, driver string }{
	{"cached", ""},
	{"cached-iothread", "iothread='1'"},
	{"native-iothread", "cache='none' io='native' iothread='1'"},
	{"uring", "cache='none' io='io_uring'"},
	{"uring-iothread", "cache='none' io='io_uring' iothread='1'"},
}

// fsyncJob is the name of a job that writes like a database: each write is on the disk before
// the next.
const fsyncJob = "4k-fsync"

// coldJobs read data that is not in the node's page cache.
var coldJobs = []fioJob{{"4k-read-cold", "randread", "4k", 32}, {"1m-read-cold", "read", "1m", 4}}

// fioOnce runs one job on a disk that has been filled, and returns its requests per second. A
// sequential job reads the disk once.
func (g guest) fioOnce(t *testing.T, disk string, j fioJob) float64 {
	t.Helper()
	job := fmt.Sprintf("[%s]\nfilename=%s\nsize=%d\nioengine=libaio\nrandrepeat=0\ninvalidate=0\ndirect=1\nrw=%s\nbs=%s\niodepth=%d\n",
		j.name, disk, fioBytes, j.rw, j.bs, j.depth)
	if j.rw == "randread" {
		job += fmt.Sprintf("time_based\nruntime=%d\n", fioSeconds)
	}
	g.writeProgram(t, "/root/job", []byte(job))
	out := g.run(t, fioHome+"/loader", "--library-path", fioHome+"/lib", fioHome+"/fio", "--output-format=json", "/root/job")
	iops, err := parseFioJobs(out)
	if err != nil || iops[j.name] == 0 {
		t.Fatalf("fio job %s: result %v, error %v, want requests per second", j.name, iops, err)
	}
	return iops[j.name]
}

// ways measures each of the ways in the same guest, one after the other: the results of fio,
// and how much of the file the node keeps in its page cache afterwards.
func (s storageBench) ways(t *testing.T) {
	t.Helper()
	job := fmt.Sprintf("[%s]\nrw=randwrite\nbs=4k\niodepth=1\nfsync=1\ntime_based\nruntime=%d\n", fsyncJob, fioSeconds)
	for _, w := range diskWays {
		file := filepath.Join(s.g.n.data, "way.qcow2")
		s.g.n.output(t, "qemu-img", "create", "-q", "-f", "qcow2", file, "256M")
		s.withDisk(t, "file", "type='qcow2' discard='unmap' "+w.driver, "<source file='"+file+"'/>", func(device string) {
			iops := s.g.fio(t, device, job)
			fioSamples("way-"+w.name, iops)
			sample("Storage/way-"+w.name+"/"+fsyncJob, iops[fsyncJob], "IOPS")
			for _, j := range coldJobs {
				// Drop the file's pages from the node's page cache.
				s.g.n.output(t, "dd", "if=/dev/null", "of="+file, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none")
				v, unit := j.value(s.g.fioOnce(t, device, j))
				sample("Storage/way-"+w.name+"/"+j.name, v, unit)
			}
			held, err := strconv.ParseInt(strings.TrimSpace(s.g.n.output(t, "fincore", "--bytes", "--noheadings", "--output", "RES", file)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sample("Storage/way-"+w.name+"/held", float64(held)/mib, "MiB")
		})
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
