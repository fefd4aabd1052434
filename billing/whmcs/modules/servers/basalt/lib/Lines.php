<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/**
 * One invoice line for each machine: the costs of a complete month by Basalt's price
 * book, before taxes, which WHMCS adds. Metrics are not needed: the costs are read when
 * the month is over, so that they are complete, also for services that have ended.
 */
final class Lines
{
    /** Records may arrive late: a month is read this many seconds after its end. */
    private const SETTLED = 6 * 3600;

    /** @return array{int,int,string} the last complete month, in WHMCS's own time zone: begin, end, name */
    public static function month(int $now): array
    {
        $zone = new \DateTimeZone(date_default_timezone_get());
        $end = (new \DateTimeImmutable('@' . ($now - self::SETTLED)))->setTimezone($zone)->modify('first day of this month midnight');
        $begin = $end->modify('first day of last month midnight');
        return [$begin->getTimestamp(), $end->getTimestamp(), $begin->format('Y-m')];
    }

    /**
     * Returns the lines of a month, each with a unique description, by which lines that were
     * created before are recognized. Amounts are in hundredths, and add up to the total.
     *
     * @param array<int,array<string,mixed>> $costs of resources
     * @return array<int,array{description:string,cents:int}>
     */
    public static function of(string $username, string $month, string $type, string $machine, array $costs, int $otherMicros): array
    {
        $micros = [];
        foreach ($costs as $c) {
            $key = (string) ($c['key'] ?? '');
            $words = match (true) {
                $type === 'machine' => $machine,
                str_starts_with($key, 'ins-') => trim((string) ($c['name'] ?? '')) . " ($key)",
                default => '',
            };
            $micros[$words] = ($micros[$words] ?? 0) + (int) ($c['amountMicros'] ?? 0);
        }
        $rest = $type === 'machine' ? $machine : '';
        $micros[$rest] = ($micros[$rest] ?? 0) + $otherMicros;
        $out = [];
        $sum = $charged = 0;
        foreach ($micros as $words => $amount) {
            $sum += $amount;
            $cents = intdiv($sum + 5000, 10000) - $charged;
            $charged += $cents;
            if ($cents > 0) {
                $out[] = ['description' => sprintf('%s, %s [%s]', $words !== '' ? $words : Lang::text('line_rest'), $month, $username), 'cents' => $cents];
            }
        }
        return $out;
    }
}
