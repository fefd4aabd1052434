package main

// storageRows returns the rows for appliance/test/e2e/node's BenchmarkStorage: the performance
// of each kind of volume in a guest, and how long a volume and a port take until they are
// usable.
func storageRows() (rows []row) {
	for _, kind := range []struct{ volume, below, belowName string }{
		{"local", "file", "fio on the node, a file there"},
		{"local-encrypted", "local", "not encrypted"},
		{"ceph", "rbd-bench", "rbd bench, same pool"},
		{"ceph-encrypted", "ceph", "not encrypted"},
	} {
		for _, job := range []struct{ sample, name, unit string }{
			{"4k-read", "4 KiB random reads", "IOPS"},
			{"4k-write", "4 KiB random writes", "IOPS"},
			{"1m-read", "1 MiB reads in order", "MB/s"},
			{"1m-write", "1 MiB writes in order", "MB/s"},
		} {
			rows = append(rows, row{
				name: "volume in a guest, " + kind.volume + ": " + job.name, bench: key{"Storage/" + kind.volume + "/" + job.sample, job.unit},
				baselineName: kind.belowName, baseline: key{"Storage/" + kind.below + "/" + job.sample, job.unit},
			})
		}
	}
	rows = append(rows, wayRows()...)
	for _, made := range []struct{ sample, below, name, belowName string }{
		{"local", "local-by-hand", "local volume: create to usable in the guest", "qemu-img and virsh"},
		{"local-encrypted", "local", "encrypted local volume: create to usable", "not encrypted"},
		{"ceph", "ceph-by-hand", "Ceph volume: create to usable in the guest", "rbd and virsh"},
		{"ceph-encrypted", "ceph", "encrypted Ceph volume: create to usable", "not encrypted"},
		{"port", "port-by-hand", "port: create its instance to OVN says up", "ovn-nbctl and ovs-vsctl"},
	} {
		rows = append(rows, row{name: made.name, bench: key{"Usable/" + made.sample, "s"}, baselineName: made.belowName, baseline: key{"Usable/" + made.below, "s"}})
	}
	return rows
}

// wayRows returns the rows that compare the ways in which QEMU can open the file of a local
// volume with its default.
func wayRows() (rows []row) {
	for _, way := range []struct{ sample, name string }{
		{"cached-iothread", "page cache, I/O thread"},
		{"native-iothread", "O_DIRECT, native, I/O thread"},
		{"uring", "O_DIRECT, io_uring"},
		{"uring-iothread", "O_DIRECT, io_uring, I/O thread"},
	} {
		for _, job := range []struct{ sample, name, unit string }{
			{"4k-read", "4 KiB random reads", "IOPS"},
			{"4k-write", "4 KiB random writes", "IOPS"},
			{"4k-fsync", "4 KiB random writes, each with fsync", "IOPS"},
			{"1m-read", "1 MiB reads in order", "MB/s"},
			{"1m-write", "1 MiB writes in order", "MB/s"},
			{"4k-read-cold", "4 KiB random reads, nothing in the node's memory", "IOPS"},
			{"1m-read-cold", "1 MiB reads in order, nothing in the node's memory", "MB/s"},
			{"held", "held in the node's page cache", "MiB"},
		} {
			rows = append(rows, row{
				name: "local file, " + way.name + ": " + job.name, bench: key{"Storage/way-" + way.sample + "/" + job.sample, job.unit},
				baselineName: "page cache, QEMU's default", baseline: key{"Storage/way-cached/" + job.sample, job.unit},
			})
		}
	}
	return rows
}
