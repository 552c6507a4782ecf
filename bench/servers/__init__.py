"""The three that are measured."""
from servers.apache_kafka import Kafka
from servers.dohle import Dohle
from servers.limit import Limit

ALL = (Dohle, Kafka, Limit)
