import type { virtualMachines as en } from '../en/virtual-machines';

export const virtualMachines: Record<keyof typeof en, string> = {
  'mach.policy': 'CPUs',
  'mach.policy.shared': 'Geteilt',
  'mach.policy.dedicated': 'Dedizierte CPUs',
  'mach.policyHelp':
    'Dediziert: Jede vCPU hat eine ganze CPU des Knotens für sich; ein Knoten muss so viele frei haben. Geteilt: Instanzen teilen sich die übrigen CPUs.',
  'mach.policyFlavor': 'Der Flavor hat geteilte CPUs. Andere Flavors haben vielleicht dedizierte.',
  'mach.cpu': 'Prozessor',
  'mach.cpu.baseline': 'Was alle Knoten unterstützen',
  'mach.cpu.host': 'Prozessor des Knotens',
  'mach.cpuHelp': 'Mit dem Prozessor des Knotens ist eine Live-Migration nur auf Knoten mit dem gleichen möglich.',
  'mach.cpu.emulated': 'Emuliert',
  'mach.nextStart': 'Eine Änderung wirkt, sobald die Instanz das nächste Mal gestoppt und gestartet wird.',
  'mach.pending': '{now}; ab dem nächsten Start: {next}',
  'mach.pages': 'Huge Pages',
  'mach.asFlavor': 'Wie im Flavor',
  'mach.pagesHelp':
    'Große Speicherseiten verringern TLB-Fehlzugriffe. Nur auf Knoten, auf denen genug reserviert sind, und nicht mit einer virtuellen GPU.',
  'mach.os': 'Betriebssystem',
  'mach.osHelp':
    'Windows: Hyper-V-Erweiterungen und lokale Zeit; das Image braucht die virtio-Treiber. Nicht mit einer virtuellen GPU. Bei der Erstellung festgelegt.',
  'mach.asImage': 'Wie das Image: {what}',
  'mach.uefiWhole': 'UEFI, Secure Boot, TPM 2.0',
  'mach.firmware': 'Firmware',
  'mach.fixed': 'Bei der Erstellung festgelegt.',
  'mach.secureBootHelp': 'Die Firmware startet nur signierten Code.',
  'mach.tpmHelp': 'Sein Zustand wird verschlüsselt gespeichert, in einem gemeinsamen Pool bei der Systemfestplatte.',
  'flv.policy.optional': 'Instanzen wählen',
  'flv.ordinary': 'Gewöhnliche Seiten',
};
