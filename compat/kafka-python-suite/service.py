"""test.service of kafka-python's tests, which its package lacks: for a broker that runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host = host
        self.port = port


SpawnedService = None  # the tests that start a broker of their own are not run
