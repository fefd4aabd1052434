// Whether programs in the instance can use its virtual GPU, as reported by its node.
import { Alert } from '@patternfly/react-core';
import type { Instance, Schemas } from '../../api/client';
import { type Key, useText } from '../../i18n';
import { Copyable } from '../../parts/copyable';

type Reason = Exclude<
  NonNullable<Schemas['InstanceCondition']['reason']>,
  'guest' | 'crash' | 'running' | 'done' | 'errors'
>;

const title: Record<Reason, Key> = {
  ready: 'gpu.ready',
  starting: 'gpu.starting',
  'kernel-without-driver': 'gpu.kernelWithoutDriver',
  'module-missing': 'gpu.moduleMissing',
  'module-blocked': 'gpu.moduleBlocked',
  nomodeset: 'gpu.nomodeset',
  'kernel-changing': 'gpu.kernelChanging',
  'reboot-needed': 'gpu.rebootNeeded',
  'no-driver': 'gpu.noDriver',
  'tools-missing': 'gpu.toolsMissing',
  'tools-too-old': 'gpu.toolsTooOld',
  'library-failed': 'gpu.libraryFailed',
  'not-used': 'gpu.notUsed',
  'backend-ended': 'gpu.backendEnded',
  unknown: 'gpu.unknown',
};

const advice: Partial<Record<Reason, Key>> = {
  'kernel-without-driver': 'gpu.kernelWithoutDriverHelp',
  'module-missing': 'gpu.moduleMissingHelp',
  'module-blocked': 'gpu.moduleBlockedHelp',
  nomodeset: 'gpu.nomodesetHelp',
  'kernel-changing': 'gpu.kernelChangingHelp',
  'reboot-needed': 'gpu.rebootNeededHelp',
  'no-driver': 'gpu.noDriverHelp',
  'tools-missing': 'gpu.toolsHelp',
  'tools-too-old': 'gpu.toolsHelp',
  'not-used': 'gpu.notUsedHelp',
  'backend-ended': 'gpu.restartHelp',
  unknown: 'gpu.restartHelp',
};

// Reasons that are not errors, or are temporary.
const quiet: Reason[] = ['starting', 'not-used', 'kernel-changing', 'unknown'];

function Try() {
  const { t } = useText();
  return (
    <>
      <Copyable label={t('gpu.smi')} text="nvidia-smi" />
      <Copyable label={t('gpu.program')} text="/opt/basalt/demo/vecadd" />
    </>
  );
}

export function GPUReady({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const said = i.status?.conditions?.find((c) => c.type === 'GPUReady');
  const reason = said?.reason as Reason | undefined;
  if (!said || !reason || reason === 'starting') return <p role="status">{t('gpu.starting')}</p>;
  if (said.status) {
    return (
      <>
        <p role="status">{t('gpu.ready')}</p>
        <Try />
      </>
    );
  }
  const help = advice[reason];
  return (
    <>
      <Alert
        isInline
        variant={quiet.includes(reason) ? 'info' : 'warning'}
        title={t(title[reason] ?? 'gpu.notReady')}
        component="p"
      >
        {help ? t(help) : said.message}
      </Alert>
      {reason === 'not-used' && <Try />}
    </>
  );
}
