// Package cluster_test runs three nodes, each with its own network, processes,
// libvirtd and daemons (installer/dev/nodes.sh), and does to them what machines
// and networks do: kill -9, SIGSTOP, power loss, partitions, cables that carry
// one way or lose packets, full disks.
//
// Three things are watched from outside all the time, whatever a test does:
//
//   - watch_test.go looks at the machine's processes: no instance may ever have
//     two QEMUs, frozen ones included, but for a migration's two ends;
//   - ledger_test.go reads what the planner has given out: no GPU more than it
//     has, no instance on two nodes;
//   - history_test.go records what API clients on all nodes were answered, and
//     porcupine seeks an order that explains it.
//
// cluster_test.go is the order of the stories; up_test.go makes and mends the
// cluster.
package cluster_test
