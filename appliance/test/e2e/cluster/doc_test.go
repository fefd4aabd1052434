// Package cluster_test runs three nodes, each with its own network, processes, libvirtd and
// daemons (installer/dev/nodes.sh), and injects the faults of machines and networks: SIGKILL,
// SIGSTOP, power loss, partitions, links that work in one direction or lose packets, full
// disks.
//
// Three properties are observed from outside all the time, whatever a test does:
//
//   - watch_test.go observes the machine's processes: no instance may ever have two
//     QEMUs, including frozen ones, except for the two ends of a migration;
//   - ledger_test.go reads the planner's allocations: no GPU may be over-allocated, no
//     instance may be on two nodes;
//   - history_test.go records the answers that API clients on all nodes received, and
//     porcupine searches for a linearization that explains them.
//
// cluster_test.go lists the stories in order; up_test.go creates and repairs the cluster.
package cluster_test
