import type { support as en } from '../en/support';

export const support: Record<keyof typeof en, string> = {
  'sgr.help':
    'Solange eine Support-Freigabe gilt, dürfen Betreiber und Reseller die Instanzen ihrer Organisation betreten: Konsolen, Shells, Apps, SSH und Befehle. Das Audit-Log zeigt, was sie tun. Freigaben sind nur nötig, wo der Cluster eine Zustimmung verlangt.',
  'sgr.empty': 'Keine Support-Freigaben',
  'sgr.emptyHelp': 'Erstellen Sie eine, wenn der Support sich Ihre Instanzen ansehen soll.',
  'sgr.emptyStaff': 'Freigaben erscheinen hier, wenn Organisationen den Support in ihre Instanzen lassen.',
  'sgr.create': 'Support-Zugang erlauben',
  'sgr.valid': 'Gültig',
  'sgr.expired': 'Abgelaufen',
  'sgr.ends': 'Endet',
  'sgr.reason': 'Grund',
  'sgr.reasonHelp': 'Zum Beispiel die Nummer eines Tickets.',
  'sgr.lasts': 'Dauer',
  'sgr.revoke': 'Widerrufen',
  'sgr.revokeHelp': 'Verbindungen des Supports, die die Freigabe brauchen, werden sofort geschlossen.',
  'sgr.require': 'Zustimmung für den Support verlangen',
  'sgr.requireHelp':
    'Betreiber und Reseller dürfen Instanzen anderer Organisationen dann nur betreten, solange diese eine gültige Support-Freigabe hat. Offene Verbindungen bleiben offen.',
};
