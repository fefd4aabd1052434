import type { dashboard as en } from '../en/dashboard';

export const dashboard: Record<keyof typeof en, string> = {
  'dash.title': 'Übersicht',
  'dash.instances': 'Instanzen',
  'dash.viewAll': 'Alle ansehen',
  'dash.more': 'Gezählt wurden die ersten {n}.',
  'dash.quota': 'Kontingent',
  'dash.noQuota': 'Es sind keine Grenzen gesetzt.',
  'dash.of': '{used} von {limit}',
  'dash.noLimit': '{used}, ohne Grenze',
  'dash.pickProject': 'Wählen Sie oben ein Projekt, um sein Kontingent zu sehen.',
  'dash.spend': 'Dieser Monat bisher',
  'dash.spendHelp': 'Nach Ihrer Preisliste, {from} bis jetzt; die Rechnung kann sich noch ändern.',
  'dash.spendWhy': 'Wie es dazu kommt',
  'dash.balance': 'Guthaben',
  'dash.first': 'Legen Sie Ihre erste Instanz an',

  'quota.instances': 'Instanzen',
  'quota.vcpus': 'vCPUs',
  'quota.memoryBytes': 'Arbeitsspeicher',
  'quota.vramBytes': 'VRAM',
  'quota.gpuSharePercent': 'GPU-Anteil (Prozent einer GPU)',
  'quota.volumeBytes': 'Speicherplatz',
  'quota.floatingIPs': 'Floating-IPs',
};
