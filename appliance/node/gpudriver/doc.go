// Package gpudriver installs NVIDIA's driver on a node, with Debian's packages: the open
// kernel modules, which dkms builds for the running kernel, and the libraries, which are
// under NVIDIA's license and therefore not on the installation medium.
//
// Decide is a pure function of what was observed. Installer.Install performs the first
// step that is not done, observes again, and so on, so that an installation which was
// killed at any moment continues when it is started again:
//
//	settings ─► unfinished ─► sources ─► packages ─► build ─► load ─► devices ─► persistence ─► doctor
//	                                     (apt, dpkg) (dkms)  └─ only with a card and its running kernel ─┘
package gpudriver
