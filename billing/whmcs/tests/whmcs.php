<?php

/**
 * A stand-in for what WHMCS gives a module, with the names and signatures of its
 * public developer documentation (class docs 8.13 to 9.1). Nothing of WHMCS is
 * in it.
 */

declare(strict_types=1);

namespace {
    define('WHMCS', true);
    date_default_timezone_set(getenv('BASALT_TIME_ZONE') ?: 'Europe/Berlin');

    final class ModuleLog
    {
        /** @var array<int,string> as WHMCS would keep it, its secrets replaced */
        public static array $lines = [];
    }

    function logModuleCall($module, $action, $request, $response, $processed = '', $secrets = []): void
    {
        $text = implode("\n", array_map(static fn ($x): string => is_string($x) ? $x : print_r($x, true), [$action, $request, $response, $processed]));
        ModuleLog::$lines[] = str_replace($secrets, '****', $text);
    }
}

namespace WHMCS\UsageBilling\Contracts\Metrics {
    interface UnitInterface
    {
        public function name();
    }
    interface UsageInterface
    {
        public function value();

        public function collectedAt();

        public function startAt();

        public function endAt();
    }
    interface MetricInterface
    {
        public const TYPE_SNAPSHOT = 'snapshot';
        public const TYPE_PERIOD_DAY = 'day';
        public const TYPE_PERIOD_MONTH = 'month';

        public function systemName();

        public function displayName();

        public function type();

        public function units();

        public function usage();

        public function withUsage(?UsageInterface $usage = null);
    }
    interface ProviderInterface
    {
        public function metrics();

        public function usage();

        public function tenantUsage($tenant);
    }
}

namespace WHMCS\UsageBilling\Metrics\Units {
    class FloatingPoint implements \WHMCS\UsageBilling\Contracts\Metrics\UnitInterface
    {
        private $name;

        public function __construct($name, $singlePerUnitName = null, $pluralPerUnitName = null, $prefix = null, $suffix = null)
        {
            $this->name = $name;
        }

        public function name()
        {
            return $this->name;
        }
    }
}

namespace WHMCS\UsageBilling\Metrics {
    use WHMCS\UsageBilling\Contracts\Metrics\MetricInterface;
    use WHMCS\UsageBilling\Contracts\Metrics\UsageInterface;

    class Usage implements UsageInterface
    {
        private $all;

        public function __construct($value, $collectedAt = null, $startAt = null, $endAt = null)
        {
            $this->all = [$value, $collectedAt, $startAt, $endAt];
        }

        public function value()
        {
            return $this->all[0];
        }

        public function collectedAt()
        {
            return $this->all[1];
        }

        public function startAt()
        {
            return $this->all[2];
        }

        public function endAt()
        {
            return $this->all[3];
        }
    }

    class Metric implements MetricInterface
    {
        private $all;
        private $usage;

        public function __construct($systemName, $displayName = null, $type = null, $units = null, $usage = null)
        {
            $this->all = [$systemName, $displayName, $type, $units];
            $this->usage = $usage;
        }

        public function systemName()
        {
            return $this->all[0];
        }

        public function displayName()
        {
            return $this->all[1];
        }

        public function type()
        {
            return $this->all[2];
        }

        public function units()
        {
            return $this->all[3];
        }

        public function usage()
        {
            return $this->usage;
        }

        public function withUsage(?UsageInterface $usage = null)
        {
            $with = clone $this;
            $with->usage = $usage;
            return $with;
        }
    }
}

namespace WHMCS\Database {
    /** Remembers what was written. */
    final class Capsule
    {
        /** @var array<int,array<string,mixed>> */
        public static array $written = [];
        private array $where = [];

        public static function table(string $name): self
        {
            $query = new self();
            $query->where['table'] = $name;
            return $query;
        }

        public function where(string $column, $value): self
        {
            $this->where[$column] = $value;
            return $this;
        }

        public function update(array $values): int
        {
            self::$written[] = $this->where + $values;
            return 1;
        }
    }
}

namespace {
    /** A service's model, as far as modules use it. */
    final class ServiceModel
    {
        public object $serviceProperties;

        public function __construct()
        {
            $this->serviceProperties = new class {
                public array $kept = [];

                public function get(string $name)
                {
                    return $this->kept[$name] ?? '';
                }

                public function save(array $values): void
                {
                    $this->kept = $values + $this->kept;
                }
            };
        }
    }

    require_once dirname(__DIR__) . '/modules/servers/basalt/basalt.php';
}
