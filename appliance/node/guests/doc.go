// Package guests shuts down a node's guests before the node itself shuts down. A
// separate process does this (basaltd guests stop), which systemd runs while
// basaltd, libvirtd and the network still work. It does not depend on basaltd: it
// completes whether basaltd works, hangs, or is killed in the meantime.
//
//	mark ─► press every power button ─► wait, press again ─► destroy what is left ─► off
//
// The mark is a file in the directory of the node's sockets. While it exists,
// basaltd starts no guest and reports that the node is shutting down. The directory
// is empty after a boot, so that guests are started again then without any action.
package guests
